// How the kernels of several members share memory for what they combine together
// (CollectiveQueue::combine_jointly()): the layout of a member's joint memory, and what of a vector
// each thread block works at. The same in all processes, whatever their devices.
//
// Words: a member brings a vector, which is cut into parts. A part is combined by one member, or by
// several, each for itself. What is short travels in lines (gpu/lines.hpp): contributions, and,
// where all get all parts, results. What is longer lies in its owner's memory, for others to read,
// and flags tell of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "codec/checksum.hpp"  // MPRESS_HOST_DEVICE
#include "gpu/lines.hpp"

namespace mpress::gpu::joint {

inline constexpr unsigned most_members = 16;
/// Kernels wait for those of others, so they leave most of a device free.
inline constexpr unsigned most_blocks = 64;
/// A part of so many bytes may travel in lines.
inline constexpr std::size_t most_in_lines = 512 << 10;
/// Lines of parts of so many have room of their own, results half of it, so that memory for short
/// calls alone is small. They are paired, those of longer parts dense.
inline constexpr std::size_t most_brief = 32 << 10;

/// A flag holds the number of a call. One for each of two waits, member and block.
inline constexpr unsigned waits = 2;
inline constexpr std::size_t flags_bytes =
    waits * most_members * most_blocks * sizeof(std::uint32_t);

MPRESS_HOST_DEVICE constexpr std::size_t flag_at(unsigned wait, unsigned member, unsigned block) {
  return ((wait * most_members + member) * most_blocks + block) * sizeof(std::uint32_t);
}

/// Of contributions, and, where all get all parts, of results.
struct TwoLines {
  Lines contributions, results;
  bool are_dense;
};

/// Is the longest part that short?
MPRESS_HOST_DEVICE constexpr bool is_brief(std::size_t longest, bool gathers) {
  return longest <= (gathers ? most_brief / 2 : most_brief);
}
MPRESS_HOST_DEVICE constexpr TwoLines brief_lines() {
  constexpr std::size_t half = paired_bytes(most_brief / 2);
  return {{flags_bytes, 2 * half}, {flags_bytes + half, 2 * half}, false};
}
constexpr std::size_t brief_end(unsigned members) {
  return brief_lines().contributions.end(members);
}

/// Behind those. By a bus lines are not worth it, and memory of the host has none.
constexpr TwoLines long_lines(unsigned members) {
  constexpr std::size_t of_member = dense_bytes(most_in_lines);
  const Lines contributions{brief_end(members), of_member};
  return {contributions, {contributions.end(members), of_member}, true};
}

constexpr TwoLines lines_for(unsigned members, std::size_t longest, bool gathers) {
  return is_brief(longest, gathers) ? brief_lines() : long_lines(members);
}

/// Behind the lines lies what a member brings, each part 16-byte aligned, and then the part that it
/// has combined.
constexpr std::size_t parts_at(unsigned members, bool has_long_lines) {
  return has_long_lines ? long_lines(members).results.end(members) : brief_end(members);
}

MPRESS_HOST_DEVICE constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + line_bytes - 1) / line_bytes * line_bytes;
}

/// How much memory vectors of `bytes` bytes take, however they are cut; 0: brief ones alone.
constexpr std::size_t memory_bytes(unsigned members, std::size_t bytes, bool has_long_lines) {
  if (bytes == 0) return brief_end(members);
  return parts_at(members, has_long_lines) + 2 * (aligned(bytes) + members * line_bytes);
}

/// What of that has to be zero before it is used.
constexpr std::size_t cleared_bytes(unsigned members, std::size_t bytes, bool has_long_lines) {
  return bytes == 0 ? brief_end(members) : parts_at(members, has_long_lines);
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
