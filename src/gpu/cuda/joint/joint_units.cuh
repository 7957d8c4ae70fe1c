// What thread blocks of a joint sum have to do: units of parts, and who gets them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/cuda/joint/joint_rows.cuh"
#include "gpu/cuda/joint/patience.cuh"
#include "gpu/gpu.hpp"

namespace mpress::gpu {

/// A JointSum as kernels have it.
struct SumCall {
  std::byte* memory[joint_sum::most_members];
  std::uint32_t units[joint_sum::most_members];
  std::uint64_t begins[joint_sum::most_members];
  std::uint64_t counts[joint_sum::most_members];
  const void* input;
  void* out;
  JointSum::Tally* tally;
  std::uint32_t longest;    ///< units of the longest part
  std::uint32_t per_round;  ///< units of each part
  std::uint32_t per_turn;   ///< units after which a thread block has one of another part
  std::uint32_t number;
  std::uint32_t readers;
  unsigned members;
  unsigned own;
  int source;
  int room;
  bool again;
  bool is_behind;
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
  __device__ joint_sum::Layout layout(unsigned member) const { return {members, units[member]}; }
  __device__ bool is_reader(unsigned member) const { return (readers >> member & 1) != 0; }
};

/// A unit of a part, as a thread block has it; its warps have a row each.
struct Unit {
  unsigned part;
  std::uint32_t number;
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

/// Thread blocks take turns: the first from `begin` on that is this one's.
__device__ inline std::uint32_t own_from(std::uint32_t begin) {
  return begin + (gridDim.x + blockIdx.x - begin % gridDim.x) % gridDim.x;
}

/// The units of other members' parts that a thread block has in round `round`: those of all parts
/// that have the same number one after another, so that all members are written to alike. Each
/// member begins with another part, and where `per_turn` says so each thread block has one of each
/// part in turn, as some may be empty.
///
///     for (UnitsOfOthers units(call, round); units.next<T>(unit);) ...
class UnitsOfOthers {
 public:
  __device__ UnitsOfOthers(const SumCall& call, std::uint32_t round)
      : call_(call),
        task_(own_from(round * call.per_round * (call.members - 1))),
        end_(min((round + 1) * call.per_round, call.longest) * (call.members - 1)) {}

  /// False: there is none.
  template <class T>
  __device__ bool next(Unit& unit) {
    const unsigned others = call_.members - 1;
    for (; task_ < end_; task_ += gridDim.x) {
      const unsigned number = task_ / others;
      const unsigned turn = number / call_.per_turn;
      unit = {(call_.own + 1 + (task_ + turn) % others) % call_.members, number};
      if (unit.number >= joint_sum::units_of(call_.counts[unit.part], sizeof(T))) continue;
      task_ += gridDim.x;
      return true;
    }
    return false;
  }

 private:
  const SumCall& call_;
  std::uint32_t task_;
  const std::uint32_t end_;
};

/// Where a row goes: a slot in the memory of each of a set of members.
class Targets {
 public:
  /// The owner of a unit, who gets this member's contribution.
  static __device__ Targets owner(const SumCall& call, const Unit& unit) {
    return {call, 1u << unit.part, 0, unit.number, true};
  }
  /// All others who get the result; and the source of a broadcast, which is told of it alone.
  template <bool as_they_are>
  static __device__ Targets readers(const SumCall& call, const Unit& unit) {
    const std::uint32_t source = call.is_broadcast<as_they_are>() ? 1u << call.source : 0;
    return {call, call.readers & ~(1u << call.own), source, unit.number, false};
  }

  /// do_one(head, row) for each, of the thread's row.
  template <class Do>
  __device__ __forceinline__ void each(const Do& do_one) const {
    for (std::uint32_t left = members_; left != 0; left &= left - 1) {
      const unsigned member = __ffs(left) - 1;
      const joint_sum::Layout layout = call_.layout(member);
      const std::size_t slot = slot_in(layout, member);
      std::byte* const memory = call_.memory[member];
      do_one(reinterpret_cast<RowHead*>(memory + layout.head_at(slot, threadIdx.x / 32)),
             memory + layout.row_at(slot, threadIdx.x / 32));
    }
  }

  __device__ unsigned number() const { return __popc(members_); }

  /// By all threads of the block, behind what they have written.
  __device__ __forceinline__ void tell() const {
    __syncthreads();
    if (threadIdx.x != 0 || (members_ | told_) == 0) return;
    __threadfence_system();  // once, for all flags
    for (std::uint32_t left = members_ | told_; left != 0; left &= left - 1) {
      const unsigned member = __ffs(left) - 1;
      const joint_sum::Layout layout = call_.layout(member);
      set_flag(call_.memory[member] + layout.flag_at(slot_in(layout, member)), call_.number);
    }
  }

 private:
  __device__ Targets(const SumCall& call, std::uint32_t members, std::uint32_t told,
                     std::uint32_t unit, bool contributes)
      : call_(call), members_(members), told_(told), unit_(unit), contributes_(contributes) {}

  __device__ std::size_t slot_in(const joint_sum::Layout& layout, unsigned member) const {
    const std::uint32_t other = joint_sum::Layout::other(member, call_.own);
    return contributes_ ? layout.contribution(call_.number, other, unit_)
                        : layout.result(other, unit_);
  }

  const SumCall& call_;
  const std::uint32_t members_;
  const std::uint32_t told_;  ///< besides
  const std::uint32_t unit_;
  const bool contributes_;
};

}  // namespace mpress::gpu
