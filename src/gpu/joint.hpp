// How the kernels of several members share memory for what they combine together
// (Queue::combine_jointly()): the layout of a member's joint memory, and what of a vector each
// thread block works at. The same in all processes, whatever their devices.
//
// Words: a member brings a vector, which is cut into parts. A part is combined by one member, or by
// several, each for itself. What is short travels in lines of 16 bytes, which carry 8 bytes and
// tell by themselves that they are there; what is longer lies in its owner's memory, for others to
// read, and flags tell of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "codec/checksum.hpp"  // MPRESS_HOST_DEVICE

namespace mpress::gpu::joint {

inline constexpr unsigned most_members = 16;
/// Kernels wait for those of others, so they leave most of a device free.
inline constexpr unsigned most_blocks = 64;
/// Of a vector that travels in lines.
inline constexpr std::size_t most_brief = 32 << 10;

inline constexpr std::size_t line_bytes = 16;
inline constexpr std::size_t line_payload = 8;
inline constexpr std::size_t lines_of_member = most_brief / line_payload + 1;

/// A flag holds the number of a call. One for each of two waits, member and block.
inline constexpr unsigned waits = 2;
inline constexpr std::size_t flags_bytes =
    waits * most_members * most_blocks * sizeof(std::uint32_t);

MPRESS_HOST_DEVICE constexpr std::size_t flag_at(unsigned wait, unsigned member, unsigned block) {
  return ((wait * most_members + member) * most_blocks + block) * sizeof(std::uint32_t);
}

/// Where another member's lines come.
MPRESS_HOST_DEVICE constexpr std::size_t lines_at(unsigned member) {
  return flags_bytes + member * lines_of_member * line_bytes;
}

/// Behind them lies what a member brings, each part 16-byte aligned, and then the part that it has
/// combined.
MPRESS_HOST_DEVICE constexpr std::size_t parts_at(unsigned members) { return lines_at(members); }

MPRESS_HOST_DEVICE constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + line_bytes - 1) / line_bytes * line_bytes;
}

/// What has to be zero before the memory is used.
constexpr std::size_t cleared_bytes(unsigned members) { return parts_at(members); }

/// Enough for vectors of `bytes` bytes, however they are cut; 0: for what travels in lines.
constexpr std::size_t memory_bytes(unsigned members, std::size_t bytes) {
  const std::size_t parts = bytes == 0 ? 0 : aligned(bytes) + members * line_bytes;
  return parts_at(members) + 2 * parts;
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
