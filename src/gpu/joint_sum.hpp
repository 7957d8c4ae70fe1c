// How the kernels of several members share memory for what they add up together row by row, in
// quanta, or combine as it is (CollectiveQueue::sum_jointly()): the layout of a member's joint
// memory, and how rows travel. The same in all processes, whatever their devices.
//
// Words: a member brings a vector, which is cut into parts, one for each member, which adds it up.
// A part is cut into units, a unit into rows. Contributions to a unit travel to its owner, results
// from there to their readers, each into its reader's memory; but results in memory of the host,
// which all reach alike, once, into their owner's. A flag a unit tells of it, in the memory of who
// waits for it. A row has as many bits a quantum as it needs, above its least one; where an element
// has no quantum, or a sum has none, the row travels as its elements.
//
// A part may have more units than memory has room for: that is a ring, which they go round lap by
// lap. Kernels take the units in rounds. In round r a member contributes to the units of round r
// and collects the results of round r - 2, or of one before that, by the same thread block for a
// place of the ring; it has collected what was there in the lap before when it contributes again:
// - the owner of that place has taken this member's contribution of the lap before, and
// - who stores the result of this lap there, in answer to the contributions of all, knows that the
//   one of the lap before has been collected by all.
// Who gets no results is told of those whose place is used again, and of no others: nothing is
// written to a member's memory by others once its kernel is over.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "codec/checksum.hpp"  // MPRESS_HOST_DEVICE

namespace mpress::gpu::joint_sum {

inline constexpr unsigned most_members = 16;
inline constexpr std::size_t row_bytes = 2 << 10;  ///< of elements
/// Of a unit, one a warp: few, so that other thread blocks work while the warps of one wait.
inline constexpr unsigned rows = 8;
inline constexpr std::size_t unit_bytes = rows * row_bytes;

/// Elements of a row that is split up among 32 lanes: each has as many in 64 bytes.
constexpr std::size_t row_elements(std::size_t width) { return row_bytes / width; }
constexpr std::size_t unit_elements(std::size_t width) { return unit_bytes / width; }
constexpr std::size_t units_of(std::size_t count, std::size_t width) {
  return (count + unit_elements(width) - 1) / unit_elements(width);
}

/// What is in front of a row: its least quantum, and the bits of each above it, which fill whole
/// words of a lane; or `as_elements`.
struct alignas(16) RowHead {
  std::int32_t least;
  std::uint32_t bits;
  std::uint32_t unused[2];
};
inline constexpr std::uint32_t as_elements = 64;

/// A slot has what travels of a unit: the heads of its rows, then the rows.
inline constexpr std::size_t slot_bytes = rows * sizeof(RowHead) + unit_bytes;
MPRESS_HOST_DEVICE constexpr std::size_t head_in_slot(unsigned row) {
  return row * sizeof(RowHead);
}
MPRESS_HOST_DEVICE constexpr std::size_t row_in_slot(unsigned row) {
  return rows * sizeof(RowHead) + row * row_bytes;
}

/// Quanta that travel lie in [-reach, reach): those of all members together fit 32 bits.
inline constexpr std::int32_t reach = 1 << 26;

// A member's memory: flags of contributions and of results, then where each thread block has left
// off, then room for contributions and results.

/// Thread blocks of a kernel.
inline constexpr unsigned most_blocks = 2048;

/// How many units of each part a member's memory has room for, and whether it is the host's: there
/// each flag has a cache line of its own, as looks at its neighbours hold up who writes it, and
/// results lie in their owner's.
struct Layout {
  std::uint32_t members;
  std::uint32_t units;
  bool is_on_host;

  /// `other` of a member: all but itself, in their order.
  static MPRESS_HOST_DEVICE constexpr std::uint32_t other(std::uint32_t of, std::uint32_t member) {
    return member - (member > of ? 1 : 0);
  }

  MPRESS_HOST_DEVICE constexpr std::size_t others() const { return members - 1; }
  MPRESS_HOST_DEVICE constexpr std::size_t flags() const { return 2 * others() * units; }
  MPRESS_HOST_DEVICE constexpr std::size_t slots() const {
    return (others() + (is_on_host ? 1 : others())) * units;
  }

  /// Flags and slots, by place in the ring.
  MPRESS_HOST_DEVICE constexpr std::size_t contribution(std::uint32_t other,
                                                        std::size_t place) const {
    return other * units + place;
  }
  MPRESS_HOST_DEVICE constexpr std::size_t result(std::uint32_t other, std::size_t place) const {
    return (others() + other) * units + place;
  }
  /// The slot, in memory of the host, of a result of the member whose memory it is.
  MPRESS_HOST_DEVICE constexpr std::size_t own_result(std::size_t place) const {
    return result(0, place);
  }

  MPRESS_HOST_DEVICE constexpr std::size_t flag_bytes() const { return is_on_host ? 64 : 4; }
  MPRESS_HOST_DEVICE constexpr std::size_t flag_at(std::size_t flag) const {
    return flag_bytes() * flag;
  }
  MPRESS_HOST_DEVICE constexpr std::size_t left_off_at() const { return flag_at(flags()); }
  MPRESS_HOST_DEVICE constexpr std::size_t slots_at() const {
    return (left_off_at() + 4 * most_blocks + 255) / 256 * 256;
  }
  constexpr std::size_t slot_at(std::size_t slot) const { return slots_at() + slot * slot_bytes; }
  constexpr std::size_t head_at(std::size_t slot, unsigned row) const {
    return slot_at(slot) + head_in_slot(row);
  }
  constexpr std::size_t row_at(std::size_t slot, unsigned row) const {
    return slot_at(slot) + row_in_slot(row);
  }

  /// What has to be zero before the memory is used.
  constexpr std::size_t cleared_bytes() const { return slots_at(); }
  constexpr std::size_t bytes() const { return slots_at() + slots() * slot_bytes; }
};

/// So much of all parts is on its way at most, of each member's contributions.
inline constexpr std::size_t most_in_ring = 64 << 20;
/// The same in the memory of all members together, if it is to stay in the host's caches, so that
/// what is on its way does not go by DRAM (docs/dev/performance-notes.md).
inline constexpr std::size_t most_cached = 16 << 20;

/// Units of a part that a ring has room for: a power of two, as all that memory has room for, so
/// that what it has room for tells how it is laid out.
constexpr std::size_t most_units(unsigned members, bool is_cached) {
  const std::size_t most = is_cached ? most_cached / (members * members) : most_in_ring / members;
  return std::bit_floor(most / unit_bytes);
}

/// The ring of a call whose longest part has `longest` units, where each member's memory has room
/// for `least` or more. Rounds of all members, which may differ, divide it if it has several laps.
constexpr std::uint32_t ring_of(std::uint32_t longest, std::uint32_t least) {
  return longest <= least ? least : std::bit_floor(least);
}
constexpr std::uint32_t laps_of(std::uint32_t longest, std::uint32_t least) {
  const std::uint32_t ring = ring_of(longest, least);
  return (longest + ring - 1) / ring;
}
/// A ring of several laps has four rounds or more.
inline constexpr std::uint32_t rounds_a_lap = 4;
static_assert(most_units(most_members, true) >= rounds_a_lap);

/// Laps of a call are fewer, however small its ring.
inline constexpr std::uint32_t most_laps = 1 << 20;
/// So many units may its longest part have.
inline constexpr std::size_t most_units_in_all = most_laps * most_units(most_members, true);

}  // namespace mpress::gpu::joint_sum
