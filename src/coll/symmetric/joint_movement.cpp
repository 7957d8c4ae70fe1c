#include "coll/symmetric/joint_movement.hpp"

#include <algorithm>

#include "core/staging.hpp"
#include "gpu/collective_queue.hpp"
#include "gpu/joint_move.hpp"
#include "message/messaging.hpp"
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

/// One number for a block, from a member to another: no sum of some is likely to be that of others.
std::uint64_t number_of(int from, int to, std::size_t bytes) {
  if (bytes == 0) return 0;
  // Finalizer of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators).
  std::uint64_t x = static_cast<std::uint64_t>(from) << 56 | static_cast<std::uint64_t>(to) << 48;
  x += bytes * 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

/// What a member tells of its memory, and of the call: bytes of a slot, and of the longest block.
struct Room {
  std::size_t bytes, longest;

  Room(std::size_t slot, std::size_t block) : bytes(slot), longest(block) {}
  explicit Room(std::uint64_t word) : bytes(word >> 32), longest(word & UINT32_MAX) {}
  std::uint64_t word() const { return std::uint64_t{bytes} << 32 | longest; }
};

}  // namespace

/// Where members do not share a codec, each tells by itself that it wants to encode.
JointMovement::JointMovement(const CallHere& here)
    : JointCall(here.messaging, here.agreed.call, here.team),
      root_(here.agreed.root),
      sent_(here.sent),
      received_(here.received),
      send_buffer_(here.send_buffer),
      receive_buffer_(here.receive_buffer),
      memory_(JointMemories::of(messaging_, team_).moved),
      least_encoded_(here.agreed.encodes_pairs && here.spec.codec != Codec::none
                         ? least_long(messaging_.config)
                         : SIZE_MAX),
      op_(schedule_op(call_)),
      blocks_(messaging_, {op_, team_.size(), root_, 1}, team_.rank(), sent_, received_),
      kernel_(messaging_, memory_) {}

BlockData JointMovement::outgoing(int to) const {
  const int me = team_.rank();
  if (!brings(op_, me, root_) || !takes(op_, to, root_)) return {};
  return blocks_.outgoing(block_of(op_, me, to, team_.size()));
}

BlockData JointMovement::incoming(int from) const {
  const int me = team_.rank();
  if (!brings(op_, from, root_) || !takes(op_, me, root_)) return {};
  return blocks_.incoming(block_of(op_, from, me, team_.size()));
}

/// On the same device as all else, and without gaps? The blocks of a buffer are looked up once:
/// `known` is the layout of the one before.
bool JointMovement::lies_here(const BlockData& data, std::shared_ptr<const Layout>& known) {
  if (data.layout == known) return true;
  if (!data.layout || !data.layout->contiguous) return false;
  const int device = device_of(messaging_, data.data, *data.layout);
  if (device_ == gpu::host) device_ = device;
  known = data.layout;
  return device != gpu::host && device == device_;
}

/// Finds where the data lies.
bool JointMovement::is_there() {
  const int me = team_.rank(), ranks = team_.size();
  if (op_ == Op::bcast) {
    // What has gaps would be brought to memory of its own.
    const BlockData data = (me == root_ ? sent_ : received_)[0];
    if (!data.layout || !data.layout->contiguous || !blocks_.open().is_ok()) return false;
  }
  sends_.assign(static_cast<std::size_t>(ranks), {});
  receives_.assign(static_cast<std::size_t>(ranks), {});
  std::shared_ptr<const Layout> known_out, known_in;
  for (int member = 0; member < ranks; ++member) {
    const auto i = static_cast<std::size_t>(member);
    const BlockData out = outgoing(member), in = incoming(member);
    // In place there is nothing to do for what stays here.
    if (member == me && (out.data == in.data || out.bytes == 0 || in.bytes == 0)) continue;
    // Blocks by address may lie anywhere.
    if (!send_buffer_) known_out = nullptr;
    if (!receive_buffer_) known_in = nullptr;
    if (out.bytes > 0 && !lies_here(out, known_out)) return false;
    if (in.bytes > 0 && !lies_here(in, known_in)) return false;
    sends_[i] = {out.data, out.bytes};
    receives_[i] = {in.data, member == me ? std::min(in.bytes, out.bytes) : in.bytes};
    if (member == me) sends_[i].bytes = receives_[i].bytes;
  }
  // Without any data here its kernel runs where the last one did, or where there could be some.
  if (device_ == gpu::host) device_ = memory_.device();
  if (device_ == gpu::host) device_ = device_of_buffers();
  return device_ != gpu::host && kernel_.may_run_on(device_);
}

/// Of buffers that nothing is sent from or comes to; gpu::host: of none.
int JointMovement::device_of_buffers() const {
  for (const void* buffer : {send_buffer_, receive_buffer_}) {
    const int device = buffer ? locate(messaging_, buffer).device : gpu::host;
    if (device != gpu::host) return device;
  }
  return gpu::host;
}

/// Bytes of the longest block that goes to another member, or comes from one.
std::size_t JointMovement::longest() const {
  std::size_t longest = 0;
  for (std::size_t i = 0; i < sends_.size(); ++i) {
    if (static_cast<int>(i) == team_.rank()) continue;
    longest = std::max<std::size_t>({longest, sends_[i].bytes, receives_[i].bytes});
  }
  return longest;
}

/// Bytes that stay here, which its kernel copies, too, and not as fast as a copy of their own.
std::size_t JointMovement::kept() const {
  return receives_[static_cast<std::size_t>(team_.rank())].bytes;
}

/// Of all members together 0, if each waits for what the others bring.
std::uint64_t JointMovement::balance() const {
  const int me = team_.rank();
  std::uint64_t balance = 0;
  for (int member = 0; member < team_.size(); ++member) {
    const auto i = static_cast<std::size_t>(member);
    if (member == me) continue;
    balance += number_of(me, member, sends_[i].bytes) - number_of(member, me, receives_[i].bytes);
  }
  return balance;
}

JointMovement::Offer JointMovement::offer() {
  if (memory_.is_given_up() || !is_there()) return {};
  const bool is_read = memory_.connect(device_);
  const auto members = static_cast<unsigned>(team_.size());
  const std::size_t longest = std::max<std::size_t>(this->longest(), 1);
  if (longest >= least_encoded_ || kept() > reach_of(team_).most_block ||
      !policy::may_move_jointly(reach_of(team_), longest, team_.size())) {
    return {};
  }
  const JointMemory::Size size{
      layout::memory_bytes(members, layout::room_for(longest), has_lines()),
      layout::cleared_bytes(members, has_lines())};
  if (!memory_.provide(device_, size) || !is_read) return {};
  const JointMemory::Ability ability =
      memory_.is_open() ? JointMemory::Ability::has : JointMemory::Ability::makes;
  const JointMemory::Routes routes = memory_.routes();
  // There may be more room from calls before.
  const Room room{layout::room_in(members, memory_.bytes(), has_lines()), longest};
  return {static_cast<std::uint64_t>(ability) | kernel_.offer(),
          joint_device_word(messaging_, device_),
          routes[0],
          routes[1],
          room.word(),
          balance()};
}

Answer JointMovement::accept(std::span<const std::uint64_t> told) {
  const Answer answer = memory_.answer(told, words);
  std::size_t longest = 0;
  std::uint64_t balance = 0;
  rooms_.clear();
  for (std::size_t i = 0; i < told.size(); i += words) {
    const Room room(told[i + words - 2]);
    longest = std::max(longest, room.longest);
    balance += told[i + words - 1];
    rooms_.push_back(room.bytes);
  }
  if (answer != Answer::accepted) return answer;
  // Counts that do not match are an error, which messages find.
  if (balance != 0) return Answer::not_now;
  const auto members = static_cast<unsigned>(team_.size());
  in_lines_ = has_lines() && longest <= std::min(reach_of(team_).most_block_in_lines,
                                                 layout::most_in_lines(members));
  kernel_.begin(device_, told, words, giving());
  return answer;
}

gpu::Event JointMovement::give(gpu::CollectiveQueue& queue, std::uint32_t number,
                               bool again) const {
  const gpu::JointMove move{memory_.memory(), rooms_,
                            in_lines_,        has_lines(),
                            is_shared(),      static_cast<unsigned>(team_.rank()),
                            number,           sends_,
                            receives_,        again,
                            memory_.undone(), kernel_.is_endless()};
  return queue.move_jointly(move);
}

bool JointMovement::advance() {
  if (!kernel_.is_under_way()) return true;
  if (!kernel_.advance(giving(), status_)) return false;
  if (status_.is_ok()) status_ = blocks_.close();
  count(
      memory_.way(), [&](int member) { return sends_[static_cast<std::size_t>(member)].bytes; },
      [&](int member) { return receives_[static_cast<std::size_t>(member)].bytes; });
  return true;
}

}  // namespace mpress::engine
