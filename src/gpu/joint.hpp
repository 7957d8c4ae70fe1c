// How the kernels of several members share memory for what they combine together
// (Queue::combine_jointly()): the layout of a member's joint memory, and what of a vector each
// thread block works at. The same in all processes, whatever their devices.
//
// Words: a member brings a vector, which is cut into parts. A part is combined by one member, or by
// several, each for itself. What is short travels in lines of 16 bytes, which carry 8 bytes and
// tell by themselves that they are there: contributions, and, where all get all parts, results.
// What is longer lies in its owner's memory, for others to read, and flags tell of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "codec/checksum.hpp"  // MPRESS_HOST_DEVICE

namespace mpress::gpu::joint {

inline constexpr unsigned most_members = 16;
/// Kernels wait for those of others, so they leave most of a device free.
inline constexpr unsigned most_blocks = 64;
/// A part of so many bytes may travel in lines.
inline constexpr std::size_t most_in_lines = 256 << 10;
/// Such a vector's lines have room of their own, so that memory for short ones alone is small. Not
/// where all get all parts.
inline constexpr std::size_t most_brief = 32 << 10;

inline constexpr std::size_t line_bytes = 16;
inline constexpr std::size_t line_payload = 8;

/// A flag holds the number of a call. One for each of two waits, member and block.
inline constexpr unsigned waits = 2;
inline constexpr std::size_t flags_bytes =
    waits * most_members * most_blocks * sizeof(std::uint32_t);

MPRESS_HOST_DEVICE constexpr std::size_t flag_at(unsigned wait, unsigned member, unsigned block) {
  return ((wait * most_members + member) * most_blocks + block) * sizeof(std::uint32_t);
}

/// Where each member's lines come, in a member's memory.
struct Lines {
  std::size_t first;
  std::size_t of_member;  ///< bytes

  MPRESS_HOST_DEVICE constexpr std::size_t at(unsigned member) const {
    return first + member * of_member;
  }
};

MPRESS_HOST_DEVICE constexpr Lines brief_lines() {
  return {flags_bytes, (most_brief / line_payload + 1) * line_bytes};
}
/// Of contributions, and, with `of_results`, of results.
MPRESS_HOST_DEVICE constexpr Lines long_lines(unsigned members, bool of_results) {
  constexpr std::size_t of_member = (most_in_lines / line_payload + 1) * line_bytes;
  return {brief_lines().at(members) + (of_results ? members * of_member : 0), of_member};
}

/// Of contributions to a vector of `bytes` bytes.
MPRESS_HOST_DEVICE constexpr Lines lines_for(unsigned members, std::size_t bytes, bool gathers) {
  return bytes <= most_brief && !gathers ? brief_lines() : long_lines(members, false);
}

/// Behind them lies what a member brings, each part 16-byte aligned, and then the part that it has
/// combined.
MPRESS_HOST_DEVICE constexpr std::size_t parts_at(unsigned members) {
  return long_lines(members, true).at(members);
}

MPRESS_HOST_DEVICE constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + line_bytes - 1) / line_bytes * line_bytes;
}

/// What has to be zero before memory for vectors of `bytes` bytes is used; 0: of brief ones alone.
constexpr std::size_t cleared_bytes(unsigned members, std::size_t bytes) {
  return bytes == 0 ? brief_lines().at(members) : parts_at(members);
}

/// Enough for vectors of `bytes` bytes, however they are cut; 0: of brief ones alone.
constexpr std::size_t memory_bytes(unsigned members, std::size_t bytes) {
  if (bytes == 0) return cleared_bytes(members, 0);
  return parts_at(members) + 2 * (aligned(bytes) + members * line_bytes);
}

/// Thread blocks for a vector of so many bytes: enough to fill a link, each with some work.
constexpr unsigned blocks_for(std::size_t bytes) {
  constexpr std::size_t of_block = 16 << 10;
  return static_cast<unsigned>(
      std::clamp<std::size_t>((bytes + of_block - 1) / of_block, 1, most_blocks));
}

/// Where a block's share of a part of `count` elements begins; that of the block behind it is its
/// end. All are whole cache lines, counted from the part's begin.
MPRESS_HOST_DEVICE constexpr std::size_t share_at(std::size_t count, std::size_t width,
                                                  unsigned blocks, unsigned block) {
  const std::size_t unit = 256 / width;
  const std::size_t share = ((count + blocks - 1) / blocks + unit - 1) / unit * unit;
  const std::size_t begin = share * block;
  return begin < count ? begin : count;
}

}  // namespace mpress::gpu::joint
