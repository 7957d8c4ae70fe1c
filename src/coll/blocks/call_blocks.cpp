#include "coll/blocks/call_blocks.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "coll/even_piece.hpp"
#include "core/plain_layout.hpp"
#include "message/messaging.hpp"

namespace mpress::engine {
namespace {

using schedule::Op;

/// Pieces of a broadcast begin at multiples of so many bytes.
constexpr std::size_t grain = 4096;

}  // namespace

Op schedule_op(const Collective& call) {
  switch (call.family) {
    case Family::bcast: return Op::bcast;
    case Family::reduce:
    case Family::gather: return Op::gather;
    case Family::scatter: return Op::scatter;
    case Family::allreduce:
    case Family::allgather: return Op::allgather;
    default: return Op::alltoall;
  }
}

CallBlocks::CallBlocks(Messaging& messaging, const schedule::Task& task, int rank,
                       const BlockList& sent, const BlockList& received)
    : BlockMap(task), messaging_(messaging), rank_(rank), sent_(sent), received_(received) {}

Status CallBlocks::open() {
  own_status_ = Status::ok;
  return task().op == Op::bcast ? open_segments() : Status::ok;
}

/// The ranks' types have one signature, and any layouts: pieces are cut of what lies without gaps.
Status CallBlocks::open_segments() {
  const bool is_root = rank_ == task().root;
  whole_ = is_root ? sent_[0] : received_[0];
  cut_ = whole_;
  if (!whole_.layout) return Status::ok;  // without bytes
  const Layout& layout = *whole_.layout;
  cut_.layout = plain_layout(layout.element);
  cut_.count = static_cast<std::int64_t>(whole_.bytes / layout.packed_unit());
  if (layout.contiguous) return Status::ok;
  cut_.data = nullptr;
  packed_ = messaging_.take_on_host(device_of(messaging_, whole_.data, layout), whole_.bytes);
  if (!packed_) return Status::no_memory;
  cut_.data = packed_.data();
  return is_root ? copy_block(messaging_, whole_, cut_) : Status::ok;
}

/// It never leaves the rank.
void CallBlocks::start_own_copy() {
  const bool is_of_root = task().op == Op::scatter || task().op == Op::gather;
  if (task().op == Op::bcast || (is_of_root && rank_ != task().root)) return;
  const bool sends_one = task().op == Op::gather || task().op == Op::allgather;
  const bool gets_one = task().op == Op::scatter;
  const BlockData from = sent_[sends_one ? 0 : rank_];
  const BlockData to = received_[gets_one ? 0 : rank_];
  if (from.bytes == 0 || to.bytes == 0) return;  // in place there is none
  CopyUnderWay copying;
  own_status_ = copy_block(messaging_, from, to, &copying);
  own_queue_ = std::move(copying.queue);
  own_copy_ = copying.event;
}

bool CallBlocks::is_own_copied() {
  if (!own_queue_) return true;
  const gpu::State state = own_queue_->query(own_copy_);
  if (state == gpu::State::pending) return false;
  if (state == gpu::State::failed) own_status_ = refused(messaging_, own_queue_->device());
  own_queue_ = {};
  return true;
}

BlockData CallBlocks::segment(schedule::Block block) const {
  if (!cut_.layout) return {};
  const auto segments = static_cast<std::uint64_t>(task().segments);
  const std::size_t piece = even_piece(cut_.bytes, segments, grain);
  const std::size_t begin = std::min(cut_.bytes, static_cast<std::size_t>(block) * piece);
  const std::size_t end = std::min(cut_.bytes, begin + piece);
  if (!cut_.data) return {nullptr, 0, cut_.layout, end - begin};  // there was no memory for it
  return {static_cast<std::byte*>(cut_.data) + begin,
          static_cast<std::int64_t>((end - begin) / std::max<std::size_t>(cut_.layout->size, 1)),
          cut_.layout, end - begin};
}

BlockData CallBlocks::outgoing(schedule::Block block) const {
  const auto size = static_cast<schedule::Block>(task().size);
  switch (task().op) {
    case Op::bcast: return segment(block);
    case Op::gather: return sent_[0];
    case Op::scatter: return sent_[static_cast<int>(block)];
    case Op::alltoall: return sent_[static_cast<int>(block % size)];
    case Op::allgather: break;
  }
  const bool is_own = static_cast<int>(block) == rank_ && !sent_.empty();
  return is_own ? sent_[0] : incoming(block);
}

BlockData CallBlocks::incoming(schedule::Block block) const {
  const auto size = static_cast<schedule::Block>(task().size);
  switch (task().op) {
    case Op::bcast: return segment(block);
    case Op::scatter: return received_[0];
    case Op::alltoall: return received_[static_cast<int>(block / size)];
    case Op::gather:
    case Op::allgather: break;
  }
  return received_[static_cast<int>(block)];
}

Status CallBlocks::close(bool is_for_root_too) {
  if (!own_status_.is_ok()) return own_status_;
  return packed_ && (rank_ != task().root || is_for_root_too) ? copy_block(messaging_, cut_, whole_)
                                                              : Status::ok;
}

}  // namespace mpress::engine
