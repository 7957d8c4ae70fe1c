#include "engine/coll/joint/joint_movement.hpp"

#include <algorithm>

#include "engine/job/job.hpp"
#include "gpu/joint_move.hpp"
#include "mpi/objects/type_info.hpp"
#include "policy/linked.hpp"

namespace mpress::engine {
namespace {

namespace layout = gpu::joint_move;
using schedule::Op;

/// Does a rank have a block for another, in such a call?
bool brings(Op op, int from, int root) {
  return (op != Op::bcast && op != Op::scatter) || from == root;
}
bool takes(Op op, int by, int root) { return op != Op::gather || by == root; }

/// The number of the block that goes from one rank to another.
schedule::Block block_of(Op op, int from, int to, int ranks) {
  switch (op) {
    case Op::bcast: return 0;
    case Op::scatter: return static_cast<schedule::Block>(to);
    case Op::gather:
    case Op::allgather: return static_cast<schedule::Block>(from);
    case Op::alltoall: break;
  }
  return static_cast<schedule::Block>(from) * static_cast<schedule::Block>(ranks) +
         static_cast<schedule::Block>(to);
}

/// What a member tells of its memory, and of the call: bytes of a slot, and of the longest block.
struct Room {
  std::size_t bytes, longest;

  Room(std::size_t slot, std::size_t block) : bytes(slot), longest(block) {}
  explicit Room(std::uint64_t word) : bytes(word >> 32), longest(word & UINT32_MAX) {}
  std::uint64_t word() const { return std::uint64_t{bytes} << 32 | longest; }
};

/// Bytes of the longest block, of an MPI_Allgatherv whose counts all members know, or `bytes`.
std::size_t longest_block(const Collective& call, const Operands& operands, std::size_t bytes) {
  if (call.op != trace::Op::allgatherv) return bytes;
  const Blocks& blocks = operands.receive.writes;
  const auto type = blocks.number() > 0 ? mpi::type_info(blocks.type(0)) : nullptr;
  for (int i = 0; type && i < blocks.number(); ++i) {
    bytes = std::max(bytes, type->size * static_cast<std::size_t>(blocks.count(i)));
  }
  return bytes;
}

}  // namespace

bool JointMovement::is_apt(const Collective& call, const Operands& operands, std::size_t bytes,
                           Context& context) {
  const int ranks = context.size();
  if (call.reduces || call.has_own_counts || ranks < 2) return false;
  if (static_cast<unsigned>(ranks) > layout::most_members || context.hosts().count() > 1) {
    return false;
  }
  return context.agreements().can_gather(words) &&
         policy::may_move_jointly(reach_of(context), longest_block(call, operands, bytes), ranks);
}

JointMovement::JointMovement(Job& job, const Collective& call, const Operands& operands,
                             Context& context)
    : JointCall(job, call, context),
      operands_(operands),
      memory_(JointMemories::of(job, context).moved),
      op_(schedule_op(call)),
      blocks_(job, op_, operands, context.rank(), context.size(), 1),
      kernel_(job, memory_) {}

Part JointMovement::outgoing(int to) const {
  const int me = context_.rank();
  if (!brings(op_, me, operands_.root) || !takes(op_, to, operands_.root)) return {};
  return blocks_.outgoing(block_of(op_, me, to, context_.size()));
}

Part JointMovement::incoming(int from) const {
  const int me = context_.rank();
  if (!brings(op_, from, operands_.root) || !takes(op_, me, operands_.root)) return {};
  return blocks_.incoming(block_of(op_, from, me, context_.size()));
}

/// On the same device as all else, and without gaps? The blocks of a buffer are looked up once:
/// `known` is the type of the one before.
bool JointMovement::lies_here(const Part& part, MPI_Datatype& known) {
  if (part.type == known) return true;
  const auto type = mpi::type_info(part.type);
  if (!type || !type->contiguous) return false;
  const int device = device_of(job_, part.data, *type);
  if (device_ == gpu::host) device_ = device;
  known = part.type;
  return device != gpu::host && device == device_;
}

/// Finds where the data lies.
bool JointMovement::is_there() {
  const int me = context_.rank(), ranks = context_.size();
  if (op_ == Op::bcast) {
    // What has gaps would be brought to memory of its own.
    const Blocks& data = me == operands_.root ? operands_.receive.reads : operands_.receive.writes;
    const auto type = data.number() > 0 ? mpi::type_info(data.type(0)) : nullptr;
    if (!type || !type->contiguous || blocks_.open() != MPI_SUCCESS) return false;
  }
  sends_.assign(static_cast<std::size_t>(ranks), {});
  receives_.assign(static_cast<std::size_t>(ranks), {});
  MPI_Datatype known_out = MPI_DATATYPE_NULL, known_in = MPI_DATATYPE_NULL;
  for (int member = 0; member < ranks; ++member) {
    const auto i = static_cast<std::size_t>(member);
    const Part out = outgoing(member), in = incoming(member);
    // In place there is nothing to do for what stays here.
    if (member == me && (out.data == in.data || out.bytes == 0 || in.bytes == 0)) continue;
    // Blocks by address may lie anywhere.
    if (operands_.send.buffer == MPI_BOTTOM) known_out = MPI_DATATYPE_NULL;
    if (operands_.receive.buffer == MPI_BOTTOM) known_in = MPI_DATATYPE_NULL;
    if (out.bytes > 0 && !lies_here(out, known_out)) return false;
    if (in.bytes > 0 && !lies_here(in, known_in)) return false;
    sends_[i] = {out.data, out.bytes};
    receives_[i] = {in.data, member == me ? std::min(in.bytes, out.bytes) : in.bytes};
    if (member == me) sends_[i].bytes = receives_[i].bytes;
  }
  return device_ != gpu::host && kernel_.may_run_on(device_);
}

JointMovement::Told JointMovement::offer() {
  if (memory_.is_given_up() || !is_there()) return {};
  const bool is_read = memory_.connect(device_);
  const auto members = static_cast<unsigned>(context_.size());
  std::size_t longest = 0;
  for (std::size_t i = 0; i < members; ++i) {
    if (static_cast<int>(i) == context_.rank()) continue;
    longest = std::max<std::size_t>({longest, sends_[i].bytes, receives_[i].bytes});
  }
  if (!policy::may_move_jointly(reach_of(context_), longest, context_.size())) return {};
  const JointMemory::Size size{
      layout::memory_bytes(members, layout::room_for(longest), has_lines()),
      layout::cleared_bytes(members, has_lines())};
  if (!memory_.provide(device_, size) || !is_read) return {};
  const JointMemory::Ability ability =
      memory_.is_open() ? JointMemory::Ability::has : JointMemory::Ability::makes;
  const JointMemory::Routes routes = memory_.routes();
  // There may be more room from calls before.
  const Room room{layout::room_in(members, memory_.bytes(), has_lines()), longest};
  return {static_cast<std::uint64_t>(ability) | kernel_.offer(), joint_device_word(job_, device_),
          routes[0], routes[1], room.word()};
}

JointAnswer JointMovement::accept(std::span<const std::uint64_t> told) {
  const JointAnswer answer = memory_.answer(told, words);
  const std::size_t longest = Room(told[words - 1]).longest;
  bool are_same = true;
  rooms_.clear();
  for (std::size_t i = 0; i < told.size(); i += words) {
    const Room room(told[i + words - 1]);
    are_same = are_same && room.longest == longest;
    rooms_.push_back(room.bytes);
  }
  if (answer != JointAnswer::accepted) return answer;
  // Counts that do not match are an error, which messages find.
  if (!are_same) return JointAnswer::not_now;
  const auto members = static_cast<unsigned>(context_.size());
  in_lines_ = has_lines() && longest <= std::min(reach_of(context_).most_block_in_lines,
                                                 layout::most_in_lines(members));
  kernel_.begin(device_, told, words, giving());
  return answer;
}

gpu::Event JointMovement::give(gpu::Queue& queue, std::uint32_t number, bool again) const {
  const gpu::JointMove move{memory_.memory(), rooms_,
                            in_lines_,        has_lines(),
                            is_shared(),      static_cast<unsigned>(context_.rank()),
                            number,           sends_,
                            receives_,        again,
                            memory_.undone(), kernel_.is_endless()};
  return queue.move_jointly(move);
}

bool JointMovement::advance() {
  if (!kernel_.is_under_way()) return true;
  if (!kernel_.advance(giving(), code_)) return false;
  if (code_ == MPI_SUCCESS) code_ = blocks_.close();
  count(
      memory_.way(), [&](int member) { return sends_[static_cast<std::size_t>(member)].bytes; },
      [&](int member) { return receives_[static_cast<std::size_t>(member)].bytes; });
  return true;
}

}  // namespace mpress::engine
