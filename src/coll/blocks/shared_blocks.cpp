#include "coll/blocks/shared_blocks.hpp"

#include <algorithm>
#include <utility>

#include "core/staging.hpp"
#include "message/block.hpp"
#include "message/shared_send.hpp"

namespace mpress::engine {

SharedBlocks::SharedBlocks(Messaging& messaging, Envelopes& envelopes, const Collective& call,
                           trace::Called called, const Team& team,
                           const schedule::Schedule& schedule, const BlockMap& blocks,
                           const Coding* coding)
    : messaging_(messaging),
      envelopes_(envelopes),
      call_(call),
      called_(called),
      team_(team),
      blocks_(blocks),
      coding_(coding) {
  if (!call.has_many_readers) return;
  const Spec spec = coding ? coding->spec : team.settings().hints.codec(messaging.config.spec);
  may_have_loss_ = spec.lossy();
  for (const schedule::Transfer& transfer : schedule.sends) {
    for (const schedule::Block block : schedule.blocks_of(transfer)) {
      Shared& shared = shared_[block];
      if (shared.readers.empty()) shared.round = transfer.round;
      shared.is_at_once = shared.is_at_once && shared.round == transfer.round;
      shared.readers.push_back(transfer.peer);
      ++shared.sends_left;
    }
  }
  for (auto& [block, shared] : shared_) {
    if (is_own(block)) continue;
    shared.kept = std::make_shared<ReceivedBlock>(messaging);
    if (shared.is_at_once) shared.kept->pass_on_from(staging_for(shared.readers));
  }
}

/// Where devices publish what they are given, which needs no host that looks.
ReceivedBlock::FindStaging SharedBlocks::staging_for(std::span<const int> readers) const {
  return [&messaging = messaging_, ranks = world_ranks(readers)](
             const Chunking& cut, int device) -> OpaqueBlock::StagingSlots {
    const link::Link& link = messaging.links.peer;
    const bool is_linked = messaging.chunks.is_open() && link.devices_publish() &&
                           cut.chunk_bytes <= wire::max_chunk_bytes &&
                           link_to(messaging, device, cut.bytes(), ranks) == link::Kind::peer;
    return is_linked ? find_staging(messaging, cut, device, link::Kind::peer, ranks)
                     : OpaqueBlock::StagingSlots{};
  };
}

std::vector<int> SharedBlocks::world_ranks(std::span<const int> readers) const {
  std::vector<int> ranks;
  for (const int reader : readers) ranks.push_back(team_.world_rank(reader));
  return ranks;
}

bool SharedBlocks::is_own(schedule::Block block) const {
  return blocks_.task().origin(block) == team_.rank();
}

/// Of an all-gather, where a rank's own block is among those that it gets; of a broadcast where
/// that is asked for.
bool SharedBlocks::is_for_self_too(schedule::Block block) const {
  if (!may_have_loss_ || !is_own(block)) return false;
  const schedule::Op op = blocks_.task().op;
  return op == schedule::Op::allgather ||
         (op == schedule::Op::bcast && is_for_root_too(messaging_.config, coding_));
}

bool SharedBlocks::is_for_root_too(const Config& config, const Coding* coding) {
  return config.same_bits || (coding && coding->is_for_root_too);
}

void SharedBlocks::provide(schedule::Block block, std::shared_ptr<OpaqueBlock> own,
                           bool is_decoded) {
  const auto found = shared_.find(block);
  if (found == shared_.end()) return;
  found->second.own = std::move(own);
  found->second.is_decided = true;
  found->second.is_decoded = is_decoded;
}

SharedBlocks::Keeping SharedBlocks::to_keep(schedule::Block block) const {
  if (const auto left = left_in_.find(block); left != left_in_.end()) return {left->second, true};
  const auto found = shared_.find(block);
  return {found != shared_.end() ? found->second.kept : nullptr};
}

bool SharedBlocks::is_kept(schedule::Block block) const {
  const std::shared_ptr<ReceivedBlock> opaque = to_keep(block).opaque;
  return opaque && opaque->may_leave();
}

/// Once for all readers, also of later rounds.
Status SharedBlocks::decide(schedule::Block block, Shared& shared, const BlockData& data,
                            bool at_once, Driven driven, LaunchBatch& batch) {
  if (shared.is_decided || !is_own(block)) return shared.status;
  shared.is_decided = true;
  const SendCall call{called_, call_.family, true, std::nullopt, coding_, &batch, driven};
  const Location place = locate(messaging_, data.data, *data.layout);
  BlockChoice choice = encode_block(messaging_, block_message(call, data, team_.settings(), place),
                                    world_ranks(shared.readers), at_once);
  shared.own = std::move(choice.opaque);
  shared.reason = choice.reason;
  if (shared.own) {
    Outcome outcome{1, lost_.value_or(0)};
    outcome.add(shared.own->loss().announced_bound());
    lost_ = outcome.bound;
  }
  return shared.status = choice.status;
}

SharedBlocks::Sending SharedBlocks::send(schedule::Block block, const BlockData& data,
                                         std::span<const int> readers, Driven driven,
                                         LaunchBatch& batch) {
  Shared& shared = shared_.at(block);
  // Otherwise an ordinary message does it.
  const bool is_summed = coding_ && coding_->is_summed;
  const bool is_opaque = shared.readers.size() > 1 || is_for_self_too(block) || is_summed;
  if (is_own(block) && !is_opaque) return {};
  const bool at_once = readers.size() == shared.readers.size();
  if (const Status status = decide(block, shared, data, at_once, driven, batch); !status.is_ok()) {
    return {nullptr, std::nullopt, status};
  }
  shared.sends_left -= readers.size();
  // Before its status: it may fail in between.
  const bool may_leave = is_own(block) ? shared.own != nullptr : shared.kept->may_leave();
  std::shared_ptr<OpaqueBlock> opaque = shared.own;
  if (!opaque) opaque = shared.kept;
  if (shared.sends_left == 0 && !is_for_self_too(block)) {
    shared.own.reset();
    shared.kept.reset();
  }
  if (opaque && !opaque->status().is_ok()) return {nullptr, std::nullopt, opaque->status()};
  SendCall call{called_, call_.family, true, std::nullopt, coding_, nullptr, driven};
  const std::vector<int> ranks = world_ranks(readers);
  if (!may_leave) {  // what did not come encoded, or could not be kept, goes as this rank has it
    call.raw_for = shared.reason;
    const Location place = locate(messaging_, data.data, *data.layout);
    opaque = hold_block(messaging_, block_message(call, data, team_.settings(), place), ranks);
    if (!opaque) return {nullptr, shared.reason};
  }
  const ElementType type = opaque->cut().type;
  const Location place{opaque->device(), true};
  auto send = std::make_unique<SharedSend>(
      messaging_, block_message(call, data, team_.settings(), place), std::move(opaque), ranks);
  return {envelopes_.send(std::move(send), type, readers)};
}

/// A block that this rank gets, too; null where that is not encoded with a loss.
OpaqueBlock* SharedBlocks::lossy(schedule::Block block, const Shared& shared) const {
  if (!is_for_self_too(block) || shared.is_decoded) return nullptr;
  OpaqueBlock* const opaque = shared.own.get();
  return opaque && opaque->cut().spec.lossy() ? opaque : nullptr;
}

bool SharedBlocks::has_own_by_decoder() const {
  return std::ranges::any_of(
      shared_, [&](const auto& entry) { return lossy(entry.first, entry.second) != nullptr; });
}

bool SharedBlocks::advance_own() {
  if (own_) {
    if (!own_->advance()) return false;
    if (own_status_.is_ok()) own_status_ = own_->status();
    own_.reset();
  }
  bool is_over = true;
  for (const auto& [block, shared] : shared_) {
    const OpaqueBlock* const opaque = lossy(block, shared);
    if (!opaque || !opaque->status().is_ok() || has_own_.contains(block)) continue;
    is_over = false;
    if (!opaque->is_whole()) continue;
    has_own_.insert(block);
    const BlockData place = blocks_.incoming(block);
    own_.emplace(messaging_, *opaque, place.data, place.count, place.layout);
    break;
  }
  return is_over;
}

}  // namespace mpress::engine
