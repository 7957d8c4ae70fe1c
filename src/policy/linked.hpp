// How a call on data of a host's devices goes, where each member reads what the others have in
// memory that all reach.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mpress::policy {

/// `one`: each member combines what all members bring. `two`: each a piece of it, and then all read
/// the pieces. `none`: it goes otherwise.
enum class Shots : std::uint8_t { none, one, two };

/// What kernels of a call reach together, and up to which sizes one of each member does it best.
/// Longer calls that move data go as blocks, which need no copy first: what goes as it is is
/// offered where it lies, or copied straight to where it belongs.
struct Reach {
  // Of a reduction:
  std::size_t most_brought;        ///< by each
  std::size_t most_read;           ///< by a member of others, in one shot
  std::size_t of_a_wait;           ///< what comes in the time of a wait
  std::size_t most_in_lines;       ///< of a part, beside what always travels so (gpu/joint.hpp)
  std::size_t of_a_wait_in_lines;  ///< less: waits are shorter, and lines longer than data
  // The same, row by row; and what is longer than the above:
  std::size_t least_in_rows;   ///< as it is
  std::size_t most_in_quanta;  ///< a sum, in quanta
  bool broadcasts_in_rows;     ///< long ones, as they are
  // Of blocks; of a broadcast all:
  std::size_t most_block_in_lines;
  std::size_t most_block;
  std::size_t most_in_all;  ///< that a member gives to the others
};

/// Memory of linked devices; a wait takes some 2 us.
inline constexpr Reach linked{.most_brought = 16 << 20,
                              .most_read = SIZE_MAX,
                              .of_a_wait = 512 << 10,
                              .most_in_lines = 512 << 10,
                              .of_a_wait_in_lines = 256 << 10,
                              .least_in_rows = (4 << 20) + 1,
                              .most_in_quanta = SIZE_MAX,
                              .broadcasts_in_rows = true,
                              .most_block_in_lines = 512 << 10,
                              .most_block = 2 << 20,
                              .most_in_all = 8 << 20};

/// Memory of the host, across a bus.
inline constexpr Reach by_host{.most_brought = 1 << 20,
                               .most_read = 3 << 20,
                               .of_a_wait = 1 << 20,
                               .most_in_lines = 0,
                               .of_a_wait_in_lines = 0,
                               .least_in_rows = 1 << 20,
                               .most_in_quanta = 4 << 20,
                               .broadcasts_in_rows = false,
                               .most_block_in_lines = 0,
                               .most_block = 1 << 20,
                               .most_in_all = 4 << 20};

/// May one kernel a member bring blocks of `bytes` bytes to each of `ranks` members, or a broadcast
/// of as many?
constexpr bool may_move_jointly(const Reach& reach, std::size_t bytes, int ranks) {
  return bytes > 0 && bytes <= reach.most_block &&
         bytes * static_cast<std::size_t>(ranks - 1) <= reach.most_in_all;
}

/// Of `bytes` bytes that each of `ranks` members, two or more, brings, and all of which all want.
/// One shot reads bytes (ranks - 1), two 2 bytes (ranks - 1) / ranks and take one wait more, in
/// which a link brings `of_a_wait` bytes.
constexpr Shots shots_for(std::size_t bytes, std::size_t most, int ranks, std::size_t of_a_wait) {
  if (bytes == 0 || bytes > most) return Shots::none;
  const std::size_t more =
      bytes / static_cast<std::size_t>(ranks) * static_cast<std::size_t>((ranks - 1) * (ranks - 2));
  return more <= of_a_wait ? Shots::one : Shots::two;
}

/// Where hosts launch what comes after a wait: some 5 us.
constexpr Shots linked_shots(std::size_t bytes, int ranks) {
  return shots_for(bytes, linked.most_brought, ranks, 1 << 20);
}

/// May one kernel a member combine `bytes` bytes of each, of which a member reads `read` of others
/// in a shot?
constexpr bool may_combine_jointly(const Reach& reach, Shots shots, std::size_t bytes,
                                   std::size_t read) {
  return bytes > 0 && bytes <= reach.most_brought &&
         (shots == Shots::two || read <= reach.most_read);
}

/// Do parts travel in lines, of which the longest has `longest` bytes?
constexpr bool travels_in_lines(const Reach& reach, std::size_t longest) {
  return longest <= reach.most_in_lines;
}

/// Where kernels wait on their devices.
constexpr Shots joint_shots(const Reach& reach, std::size_t bytes, int ranks) {
  const bool in_lines = travels_in_lines(reach, bytes / static_cast<std::size_t>(ranks));
  return shots_for(bytes, reach.most_brought, ranks,
                   in_lines ? reach.of_a_wait_in_lines : reach.of_a_wait);
}

}  // namespace mpress::policy
