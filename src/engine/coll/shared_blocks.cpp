#include "engine/coll/shared_blocks.hpp"

#include <utility>

#include "engine/job.hpp"
#include "engine/p2p/send.hpp"
#include "mpi/counted.hpp"

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

int SharedBlocks::send(schedule::Block block, const Part& part, std::span<const int> readers,
                       std::vector<MPI_Request>& requests, std::span<const int>& untold) {
  Shared& shared = shared_.at(block);
  const SendArguments arguments{part.data, part.count, part.type, readers.front(), context_.comm()};
  untold = readers;
  const bool at_once = readers.size() == shared.readers.size();
  if (const int code = decide(block, shared, arguments, at_once); code != MPI_SUCCESS) return code;
  shared.sends_left -= readers.size();
  // What was to be kept and did not come encoded, or could not be, goes as this rank has it.
  const bool goes_encoded = shared.parcel && (is_own(block) ? shared.parcel->code() == MPI_SUCCESS
                                                            : shared.parcel->is_whole());
  if (!goes_encoded && is_own(block) && shared.parcel) return shared.parcel->code();
  if (!goes_encoded) return send_raw(shared, arguments, requests, untold);
  untold = {};
  const int code = send_parcel(job_, {call_.op, call_.family, true, std::nullopt}, arguments,
                               shared.parcel, readers, context_.block_tag(), requests);
  if (shared.sends_left == 0 && !is_for_self_too(block)) shared.parcel.reset();
  return code;
}

int SharedBlocks::send_raw(const Shared& shared, SendArguments arguments,
                           std::vector<MPI_Request>& requests, std::span<const int>& untold) {
  const SendCall call{call_.op, call_.family, true, shared.reason};
  for (; !untold.empty(); untold = untold.subspan(1)) {
    arguments.destination = untold.front();
    Outgoing out = prepare_send(job_, call, arguments);
    if (out.error != MPI_SUCCESS) return out.error;
    MPI_Request request = MPI_REQUEST_NULL;
    const int code =
        send_later(job_, std::move(out), mpi::counted::Isend, context_.block_tag(), &request);
    if (request != MPI_REQUEST_NULL) requests.push_back(request);
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
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
