// How a reduction of data on linked devices goes, where each member reads what the others have in
// memory that all reach.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mpress::policy {

/// `one`: each member combines what all members bring. `two`: each a piece of it, and then all read
/// the pieces. `none`: it goes otherwise.
enum class Shots : std::uint8_t { none, one, two };

/// Longer ones, but for sums, go as blocks, which need no copy first: what goes as it is is offered
/// where it lies.
inline constexpr std::size_t most_linked = 16 << 20;

/// Sums of more go row by row.
inline constexpr std::size_t most_combined = 4 << 20;

/// Blocks of `bytes` bytes for each of `ranks` members, or a broadcast of as many, that one kernel
/// a member brings: longer ones are copied straight to where they belong, which takes two copies
/// less of each byte, and some 20 us more for each round.
constexpr bool may_move_jointly(std::size_t bytes, int ranks) {
  constexpr std::size_t most_block = 2 << 20, most_in_all = 8 << 20;
  return bytes > 0 && bytes <= most_block &&
         bytes * static_cast<std::size_t>(ranks - 1) <= most_in_all;
}

/// Of `bytes` bytes that each of `ranks` members, two or more, brings, and all of which all want.
/// One shot reads bytes (ranks - 1), two 2 bytes (ranks - 1) / ranks and take one wait more, in
/// which a link brings `of_a_wait` bytes.
constexpr Shots shots_for(std::size_t bytes, int ranks, std::size_t of_a_wait) {
  if (bytes == 0 || bytes > most_linked) return Shots::none;
  const std::size_t more =
      bytes / static_cast<std::size_t>(ranks) * static_cast<std::size_t>((ranks - 1) * (ranks - 2));
  return more <= of_a_wait ? Shots::one : Shots::two;
}

/// Where hosts launch what comes after a wait: some 5 us.
constexpr Shots linked_shots(std::size_t bytes, int ranks) {
  return shots_for(bytes, ranks, 1 << 20);
}

/// Where kernels wait on their devices: some 2 us.
constexpr Shots joint_shots(std::size_t bytes, int ranks) {
  return shots_for(bytes, ranks, 512 << 10);
}

}  // namespace mpress::policy
