#include "engine/coll/shared_blocks.hpp"

#include <utility>

#include "engine/job.hpp"
#include "engine/p2p/send.hpp"

namespace mpress::engine {

SharedBlocks::SharedBlocks(Job& job, const Collective& call, const Context& context,
                           const schedule::Schedule& schedule, const BlockMap& blocks)
    : job_(job), call_(call), context_(context), blocks_(blocks) {
  if (!call.has_many_readers) return;
  for (const schedule::Transfer& transfer : schedule.sends) {
    for (const schedule::Block block : schedule.blocks_of(transfer)) {
      Shared& shared = shared_[block];
      shared.readers.push_back(transfer.peer);
      ++shared.sends_left;
      if (!is_own(block) && !shared.parcel) shared.parcel = std::make_shared<Parcel>(job);
    }
  }
}

bool SharedBlocks::is_own(schedule::Block block) const {
  return blocks_.task().origin(block) == context_.rank();
}

/// Of an all-gather, where a rank's own block is among those that it gets.
bool SharedBlocks::is_for_self_too(schedule::Block block) const {
  return blocks_.task().op == schedule::Op::allgather && is_own(block);
}

std::shared_ptr<Parcel> SharedBlocks::to_keep(schedule::Block block) const {
  const auto found = shared_.find(block);
  return found != shared_.end() ? found->second.parcel : nullptr;
}

bool SharedBlocks::is_kept(schedule::Block block) const {
  const std::shared_ptr<Parcel> parcel = to_keep(block);
  return parcel && parcel->is_whole();
}

/// Once for all readers, also of later rounds.
int SharedBlocks::decide(schedule::Block block, Shared& shared, const SendArguments& arguments,
                         bool at_once) {
  if (shared.is_decided || !is_own(block)) return MPI_SUCCESS;
  shared.is_decided = true;
  Packing packing = pack_parcel(job_, {call_.op, call_.family, true, std::nullopt}, arguments,
                                shared.readers, at_once);
  shared.parcel = std::move(packing.parcel);
  shared.reason = packing.reason;
  return packing.error;
}

SharedBlocks::Sending SharedBlocks::send(schedule::Block block, const Part& part,
                                         std::span<const int> readers, int tag) {
  Shared& shared = shared_.at(block);
  if (is_own(block) && shared.readers.size() == 1 && !is_for_self_too(block)) return {};
  const SendArguments arguments{part.data, part.count, part.type, readers.front(), context_.comm()};
  const bool at_once = readers.size() == shared.readers.size();
  if (const int code = decide(block, shared, arguments, at_once); code != MPI_SUCCESS) {
    return {nullptr, std::nullopt, code};
  }
  shared.sends_left -= readers.size();
  const std::shared_ptr<Parcel> parcel = shared.parcel;
  if (shared.sends_left == 0 && !is_for_self_too(block)) shared.parcel.reset();
  if (parcel && parcel->code() != MPI_SUCCESS) return {nullptr, std::nullopt, parcel->code()};
  // What was to be kept and did not come encoded, or could not be, goes as this rank has it.
  if (!parcel || (!is_own(block) && !parcel->is_whole())) return {nullptr, shared.reason};
  return {std::make_shared<ParcelSend>(job_, SendCall{call_.op, call_.family, true}, arguments,
                                       parcel, readers, tag)};
}

int SharedBlocks::finish() {
  int code = MPI_SUCCESS;
  for (const auto& [block, shared] : shared_) {
    if (!is_for_self_too(block) || !shared.parcel || !shared.parcel->is_whole() ||
        !shared.parcel->cut().spec.lossy()) {
      continue;
    }
    const Part part = blocks_.incoming(block);
    const int one =
        decode_parcel(job_, *shared.parcel, {part.data, part.count, part.type, context_.comm()});
    if (code == MPI_SUCCESS) code = one;
  }
  return code;
}

}  // namespace mpress::engine
