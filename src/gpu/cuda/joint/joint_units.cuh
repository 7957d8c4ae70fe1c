// What thread blocks of a joint sum have to do: units of parts, and who gets them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "gpu/collective_queue.hpp"
#include "gpu/cuda/joint/await.cuh"
#include "gpu/cuda/joint/joint_rows.cuh"

namespace mpress::gpu {

/// Divides by one instruction, where the dividend times the divisor is below 2^32.
class Divisor {
 public:
  Divisor() = default;
  explicit Divisor(std::uint32_t value)
      : value_(value), inverse_(static_cast<std::uint32_t>((std::uint64_t{1} << 32) / value + 1)) {}

  __device__ std::uint32_t divides(std::uint32_t n) const {
    return value_ == 1 ? n : __umulhi(n, inverse_);
  }
  __device__ std::uint32_t rest_of(std::uint32_t n) const { return n - divides(n) * value_; }

 private:
  std::uint32_t value_;
  std::uint32_t inverse_;
};

/// A JointSum as kernels have it. Instructions bind sums of quanta, so the host finds all that it
/// can.
struct SumCall {
  std::byte* memory[joint_sum::most_members];
  std::byte* slots_at[joint_sum::most_members];  ///< in `memory`
  std::uint64_t begins[joint_sum::most_members];
  std::uint64_t counts[joint_sum::most_members];
  std::byte* results_of[joint_sum::most_members];  ///< by part, the slot of its first place
  // Flags and slots of the first place: in a member's memory, of what this one sends there; and in
  // its own, by Layout::other() and by part, of what others send.
  std::uint32_t contribution_to[joint_sum::most_members];
  std::uint32_t result_to[joint_sum::most_members];  ///< its own: where all find its results
  std::uint32_t contribution_from[joint_sum::most_members];
  std::uint32_t result_from[joint_sum::most_members];
  const void* input;
  void* out;
  std::uint32_t* left_off;  ///< by thread block
  JointSum::Tally* tally;
  std::uint32_t longest;    ///< units of the longest part
  std::uint32_t per_round;  ///< units of each part
  std::uint32_t lap_bits;   ///< a ring of several laps has 2^lap_bits units
  std::uint32_t lag;        ///< rounds after which one is collected
  Divisor by_others;
  Divisor by_turn;  ///< by units after which a thread block has one of another part
  Divisor by_blocks;
  codec::any_order::QuickReach quick;
  std::uint32_t number;
  std::uint32_t flag_bytes;
  std::uint32_t readers;
  unsigned members;
  unsigned own;
  int source;
  int room;
  codec::Combine how;
  bool is_on_host;  ///< the memory
  bool takes_turns;
  bool again;
  bool tells_of_elements;
  bool finds_range;

  /// Only what goes as it is may be a broadcast.
  template <bool as_they_are>
  __device__ bool is_broadcast() const {
    return as_they_are && source >= 0;
  }
  template <bool as_they_are>
  __device__ bool brings(unsigned member) const {
    return !is_broadcast<as_they_are>() || member == static_cast<unsigned>(source);
  }
  __device__ bool is_reader(unsigned member) const { return (readers >> member & 1) != 0; }

  __device__ std::byte* flag_of(unsigned member, std::uint32_t flag) const {
    return memory[member] + std::size_t{flag} * flag_bytes;
  }
  /// Of the thread's row, in the slots from `first` on.
  static __device__ RowHead* head_in(std::byte* first, std::uint32_t slot) {
    std::byte* const at = first + std::size_t{slot} * joint_sum::slot_bytes;
    return reinterpret_cast<RowHead*>(at + joint_sum::head_in_slot(threadIdx.x / 32));
  }
  static __device__ std::byte* row_in(std::byte* first, std::uint32_t slot) {
    return first + std::size_t{slot} * joint_sum::slot_bytes +
           joint_sum::row_in_slot(threadIdx.x / 32);
  }
  __device__ RowHead* head_of(unsigned member, std::uint32_t slot) const {
    return head_in(slots_at[member], slot);
  }
  __device__ std::byte* row_of(unsigned member, std::uint32_t slot) const {
    return row_in(slots_at[member], slot);
  }
};

/// A unit of a part, as a thread block has it; its warps have a row each.
struct Unit {
  unsigned part;
  std::uint32_t number;

  /// In the ring.
  __device__ std::uint32_t place(const SumCall& call) const {
    return number & ((1u << call.lap_bits) - 1);
  }
  /// What flags have that tell of it.
  __device__ std::uint32_t flag(const SumCall& call) const {
    return call.number + (number >> call.lap_bits);
  }
};

/// The thread's row: its first element in the part, and how many there are from there on.
template <class T>
__device__ std::size_t row_begin(const Unit& unit) {
  return (std::size_t{unit.number} * joint_sum::rows + threadIdx.x / 32) *
         joint_sum::row_elements(sizeof(T));
}
template <class T>
__device__ std::size_t row_count(const SumCall& call, const Unit& unit) {
  const std::size_t begin = row_begin<T>(unit), count = call.counts[unit.part];
  return begin < count ? count - begin : 0;
}

/// Has its part another unit at its place of the ring, in the next lap?
template <class T>
__device__ bool is_used_again(const SumCall& call, const Unit& unit) {
  const std::size_t next = std::size_t{unit.number} + (1u << call.lap_bits);
  return next * joint_sum::unit_elements(sizeof(T)) < call.counts[unit.part];
}

/// Thread blocks take turns: the first from `begin` on that is this one's.
__device__ inline std::uint32_t own_from(const SumCall& call, std::uint32_t begin) {
  const std::uint32_t turn = call.by_blocks.rest_of(begin);
  return begin + blockIdx.x - turn + (turn > blockIdx.x ? gridDim.x : 0);
}

/// The units of other members' parts that a thread block has in round `round`: those of all parts
/// that have the same number one after another, so that all members are written to alike. Each
/// member begins with another part, and where the call takes turns each thread block has one of
/// each part in turn, as some may be empty.
///
///     for (UnitsOfOthers units(call, round); units.next<T>(unit);) ...
class UnitsOfOthers {
 public:
  __device__ UnitsOfOthers(const SumCall& call, std::uint32_t round) : call_(call) {
    const std::uint32_t first = round * call.per_round;
    const std::uint32_t place = Unit{0, first}.place(call);
    const std::uint32_t number =
        first < call.longest ? min(call.per_round, call.longest - first) : 0;
    before_ = first - place;
    task_ = own_from(call, place * (call.members - 1));
    end_ = (place + number) * (call.members - 1);
  }

  /// False: there is none.
  template <class T>
  __device__ bool next(Unit& unit) {
    for (; task_ < end_; task_ += gridDim.x) {
      const std::uint32_t place = call_.by_others.divides(task_);
      const std::uint32_t turn = call_.takes_turns ? call_.by_turn.divides(place) : 0;
      const unsigned part = call_.own + 1 + call_.by_others.rest_of(task_ + turn);
      unit = {part < call_.members ? part : part - call_.members, before_ + place};
      if (std::size_t{unit.number} * joint_sum::unit_elements(sizeof(T)) >=
          call_.counts[unit.part]) {
        continue;
      }
      task_ += gridDim.x;
      return true;
    }
    return false;
  }

 private:
  const SumCall& call_;
  std::uint32_t before_;  ///< units of the laps before
  std::uint32_t task_;    ///< in the ring
  std::uint32_t end_;
};

/// Where a row goes, for a set of members who get it: a slot in the memory of each, or, of a result
/// in memory of the host, one that all read.
class Targets {
 public:
  /// The owner of a unit, who gets this member's contribution.
  static __device__ Targets owner(const SumCall& call, const Unit& unit) {
    return {call, 1u << unit.part, 1u << unit.part, 0, unit.place(call), true};
  }
  /// All others who get the result; the rest are told of it alone, where its place is used again.
  template <class T>
  static __device__ Targets readers(const SumCall& call, const Unit& unit) {
    const std::uint32_t others = ((2u << (call.members - 1)) - 1) & ~(1u << call.own);
    const std::uint32_t told = is_used_again<T>(call, unit) ? others : 0;
    const std::uint32_t members = call.readers & others;
    const std::uint32_t stored = call.is_on_host && members != 0 ? 1u << call.own : members;
    return {call, members, stored, told, unit.place(call), false};
  }

  /// do_one(head, row) for each slot, of the thread's row.
  template <class Do>
  __device__ __forceinline__ void each(const Do& do_one) const {
    for (std::uint32_t left = stored_; left != 0; left &= left - 1) {
      const unsigned member = __ffs(left) - 1;
      do_one(call_.head_of(member, slot_of(member)), call_.row_of(member, slot_of(member)));
    }
  }

  __device__ unsigned number() const { return __popc(members_); }
  __device__ bool has(unsigned member) const { return (members_ >> member & 1) != 0; }

  /// A member's flag, behind what has been written to it; null of one that is told of nothing.
  __device__ std::byte* flag_of(unsigned member) const {
    if (((members_ | told_) >> member & 1) == 0) return nullptr;
    return call_.flag_of(member, slot_of(member));
  }

 private:
  __device__ Targets(const SumCall& call, std::uint32_t members, std::uint32_t stored,
                     std::uint32_t told, std::uint32_t place, bool contributes)
      : call_(call),
        members_(members),
        stored_(stored),
        told_(told),
        place_(place),
        contributes_(contributes) {}

  __device__ std::uint32_t slot_of(unsigned member) const {
    return (contributes_ ? call_.contribution_to : call_.result_to)[member] + place_;
  }

  const SumCall& call_;
  const std::uint32_t members_;
  const std::uint32_t stored_;  ///< in whose memory
  const std::uint32_t told_;    ///< besides
  const std::uint32_t place_;
  const bool contributes_;
};

}  // namespace mpress::gpu
