// How the kernels of several members share memory for what they add up together row by row, in
// quanta of szp or as it is (Queue::sum_jointly()): the layout of a member's joint memory, and how
// rows travel. The same in all processes, whatever their devices.
//
// Words: a member brings a vector, which is cut into parts, one for each member, which adds it up.
// A part is cut into units, a unit into rows. Contributions to a unit travel to its owner, results
// from there to their readers, each into its reader's memory; a flag a unit tells of it. A row has
// as many bits a quantum as it needs, above its least one; where an element has no quantum, or a
// sum has none, the row travels as its elements.
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

// A member's memory: flags of contributions and of results, marks of units that are added up, then
// room for contributions and results. Contributions of a call and of the next do not share memory:
// a member may send those of the next while the last are still read.

/// How many units of the longest part a member's memory has room for.
struct Layout {
  std::uint32_t members;
  std::uint32_t units;

  /// `other` of a member: all but itself, in their order.
  static MPRESS_HOST_DEVICE constexpr std::uint32_t other(std::uint32_t of, std::uint32_t member) {
    return member - (member > of ? 1 : 0);
  }

  MPRESS_HOST_DEVICE constexpr std::size_t others() const { return members - 1; }
  MPRESS_HOST_DEVICE constexpr std::size_t slots() const { return 3 * others() * units; }

  MPRESS_HOST_DEVICE constexpr std::size_t contribution(std::uint32_t call, std::uint32_t other,
                                                        std::size_t unit) const {
    return ((call & 1) * others() + other) * units + unit;
  }
  MPRESS_HOST_DEVICE constexpr std::size_t result(std::uint32_t other, std::size_t unit) const {
    return (2 * others() + other) * units + unit;
  }

  static MPRESS_HOST_DEVICE constexpr std::size_t flag_at(std::size_t slot) { return 4 * slot; }
  MPRESS_HOST_DEVICE constexpr std::size_t mark_at(std::size_t unit) const {
    return 4 * (slots() + unit);
  }
  MPRESS_HOST_DEVICE constexpr std::size_t slots_at() const {
    return (4 * (slots() + units) + 255) / 256 * 256;
  }
  constexpr std::size_t head_at(std::size_t slot, unsigned row) const {
    return slots_at() + slot * slot_bytes + head_in_slot(row);
  }
  constexpr std::size_t row_at(std::size_t slot, unsigned row) const {
    return slots_at() + slot * slot_bytes + row_in_slot(row);
  }

  /// What has to be zero before the memory is used.
  constexpr std::size_t cleared_bytes() const { return slots_at(); }
  constexpr std::size_t bytes() const { return slots_at() + slots() * slot_bytes; }
};

/// Longer vectors are added up window by window, so that the memory stays bounded.
inline constexpr std::size_t most_window = 128 << 20;

/// The units of a part in a window: a power of two, as all that memory has room for, so that what
/// it has room for tells how it is laid out.
constexpr std::size_t most_units(unsigned members) {
  return std::bit_floor(most_window / members / unit_bytes);
}

}  // namespace mpress::gpu::joint_sum
