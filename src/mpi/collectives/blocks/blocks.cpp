#include "mpi/collectives/blocks/blocks.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "coll/even_piece.hpp"
#include "core/staging.hpp"
#include "mpi/job/job.hpp"
#include "mpi/objects/relayout.hpp"
#include "mpi/objects/type_info.hpp"
#include "mpi/objects/type_runs.hpp"

namespace mpress::engine {
namespace {

using schedule::Op;

/// Pieces of a broadcast begin at multiples of so many bytes.
constexpr std::size_t grain = 4096;

/// Copies within this process, where both have the same signature. What takes one copy of a
/// device's may be left under way in `copying`, where that is given.
Status copy(Job& job, const Part& from, const Part& to, CopyUnderWay* copying = nullptr) {
  const std::shared_ptr<mpi::TypeInfo> from_type = mpi::type_info(from.type);
  const std::shared_ptr<mpi::TypeInfo> to_type = mpi::type_info(to.type);
  const Location from_place = locate(job, from.data, *from_type);
  const Location to_place = locate(job, to.data, *to_type);
  const int from_device = from_place.device;
  const int to_device = to_place.device;
  const std::size_t bytes = std::min(from.bytes, to.bytes);
  const bool is_gapless = from_type->contiguous && to_type->contiguous;
  const bool are_readable = from_place.is_readable && to_place.is_readable;
  const bool are_on_host = from_device == gpu::host && to_device == gpu::host;
  const bool is_one =
      from_device == gpu::host || to_device == gpu::host || to_device == from_device;
  if (is_gapless && is_one && (are_readable || !are_on_host)) {
    return copy_bytes(job, to.data, to_place, from.data, from_place, bytes, copying);
  }
  if (are_on_host) {
    if (are_readable && mpi::copy_regular({from.data, from_type.get(), from.count},
                                          {to.data, to_type.get(), to.count})) {
      return Status::ok;
    }
    return status_of(
        mpi::relayout(from.data, {from.count, from.type}, to.data, {to.count, to.type}));
  }
  const int device = from_device == gpu::host ? to_device : from_device;
  const memory::Buffer packed = job.devices.take_pinned(device, bytes);
  if (!packed) return short_of_memory(job, device);
  const mpi::TypedCount elements{static_cast<MPI_Count>(bytes / from_type->packed_unit()),
                                 from_type->packed_type()};
  const Status status =
      from_device != gpu::host
          ? pack_from_device(job, from_device, from.data, from.count, *from_type, packed.data(),
                             bytes)
          : status_of(mpi::relayout(from.data, {from.count, from.type}, packed.data(), elements));
  if (!status.is_ok()) return status;
  return to_device != gpu::host
             ? unpack_to_device(job, to_device, packed.data(), bytes, to.data, to.count, *to_type)
             : status_of(mpi::relayout(packed.data(), elements, to.data, {to.count, to.type}));
}

}  // namespace

BlockData data_of(const Operand& operand, const Blocks& blocks, int i) {
  if (i >= blocks.number()) return {};
  const Block block = blocks[i];
  if (block.count <= 0) return {};
  std::shared_ptr<const mpi::TypeInfo> type = mpi::type_info(block.type);
  if (!type) return {};
  const auto at =
      reinterpret_cast<std::uintptr_t>(operand.buffer) + static_cast<std::uintptr_t>(block.offset);
  const std::size_t bytes = type->size * static_cast<std::size_t>(block.count);
  return {reinterpret_cast<void*>(at), block.count, std::move(type), bytes};
}

Part part_of(const Operand& operand, const Blocks& blocks, int i) {
  const BlockData data = data_of(operand, blocks, i);
  if (!data.layout) return {};
  return {data.data, data.count, blocks.type(i), data.bytes};
}

BlockData data_of(const Part& part) {
  if (part.bytes == 0) return {};
  std::shared_ptr<const Layout> layout = mpi::type_info(part.type);
  if (!layout) return {};
  return {part.data, part.count, std::move(layout), part.bytes};
}

int copy_part(Job& job, const Part& from, const Part& to) {
  return job.code_of(copy(job, from, to));
}

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

OperandBlocks::OperandBlocks(Job& job, Op op, const Operands& operands, int rank, int ranks,
                             int segments)
    : BlockMap({op, ranks, operands.root, segments}), job_(job), operands_(operands), rank_(rank) {}

Status OperandBlocks::open() {
  own_status_ = Status::ok;
  return task().op == Op::bcast ? open_segments() : Status::ok;
}

/// The ranks' types have one signature, and any layouts: pieces are cut of what lies without gaps.
Status OperandBlocks::open_segments() {
  const bool is_root = rank_ == task().root;
  const Operand& operand = operands_.receive;
  whole_ = part_of(operand, is_root ? operand.reads : operand.writes, 0);
  cut_ = whole_;
  const std::shared_ptr<mpi::TypeInfo> type = mpi::type_info(whole_.type);
  if (!type) return Status::of_transport(MPI_ERR_TYPE);
  cut_.type = type->packed_type();
  cut_.count = static_cast<MPI_Count>(whole_.bytes / type->packed_unit());
  cut_layout_ = mpi::type_info(cut_.type);
  if (!cut_layout_) return Status::of_transport(MPI_ERR_TYPE);
  if (type->contiguous) return Status::ok;
  cut_.data = nullptr;
  packed_ = job_.take_on_host(device_of(job_, whole_.data, *type), whole_.bytes);
  if (!packed_) return Status::no_memory;
  cut_.data = packed_.data();
  return is_root ? copy(job_, whole_, cut_) : Status::ok;
}

/// It never leaves the rank.
void OperandBlocks::start_own_copy() {
  const bool is_of_root = task().op == Op::scatter || task().op == Op::gather;
  if (task().op == Op::bcast || (is_of_root && rank_ != task().root)) return;
  const bool sends_one = task().op == Op::gather || task().op == Op::allgather;
  const bool gets_one = task().op == Op::scatter;
  const Part from = part_of(operands_.send, operands_.send.reads, sends_one ? 0 : rank_);
  const Part to = part_of(operands_.receive, operands_.receive.writes, gets_one ? 0 : rank_);
  if (from.bytes == 0 || to.bytes == 0) return;  // in place there is none
  CopyUnderWay copying;
  own_status_ = copy(job_, from, to, &copying);
  own_queue_ = std::move(copying.queue);
  own_copy_ = copying.event;
}

bool OperandBlocks::is_own_copied() {
  if (!own_queue_) return true;
  const gpu::State state = own_queue_->query(own_copy_);
  if (state == gpu::State::pending) return false;
  if (state == gpu::State::failed) own_status_ = refused(job_, own_queue_->device());
  own_queue_ = {};
  return true;
}

BlockData OperandBlocks::segment(schedule::Block block) const {
  const auto segments = static_cast<std::uint64_t>(task().segments);
  const std::size_t piece = even_piece(cut_.bytes, segments, grain);
  const std::size_t begin = std::min(cut_.bytes, static_cast<std::size_t>(block) * piece);
  const std::size_t end = std::min(cut_.bytes, begin + piece);
  if (!cut_.data) return {nullptr, 0, cut_layout_, end - begin};  // there was no memory for it
  return {static_cast<std::byte*>(cut_.data) + begin,
          static_cast<std::int64_t>((end - begin) / std::max<std::size_t>(cut_layout_->size, 1)),
          cut_layout_, end - begin};
}

BlockData OperandBlocks::outgoing(schedule::Block block) const {
  const auto size = static_cast<schedule::Block>(task().size);
  const Operand& send = operands_.send;
  switch (task().op) {
    case Op::bcast: return segment(block);
    case Op::gather: return data_of(send, send.reads, 0);
    case Op::scatter: return data_of(send, send.reads, static_cast<int>(block));
    case Op::alltoall: return data_of(send, send.reads, static_cast<int>(block % size));
    case Op::allgather: break;
  }
  const bool is_own = static_cast<int>(block) == rank_ && send.reads.number() > 0;
  return is_own ? data_of(send, send.reads, 0) : incoming(block);
}

BlockData OperandBlocks::incoming(schedule::Block block) const {
  const auto size = static_cast<schedule::Block>(task().size);
  const Operand& receive = operands_.receive;
  switch (task().op) {
    case Op::bcast: return segment(block);
    case Op::scatter: return data_of(receive, receive.writes, 0);
    case Op::alltoall: return data_of(receive, receive.writes, static_cast<int>(block / size));
    case Op::gather:
    case Op::allgather: break;
  }
  return data_of(receive, receive.writes, static_cast<int>(block));
}

Status OperandBlocks::close(bool is_for_root_too) {
  if (!own_status_.is_ok()) return own_status_;
  return packed_ && (rank_ != task().root || is_for_root_too) ? copy(job_, cut_, whole_)
                                                              : Status::ok;
}

}  // namespace mpress::engine
