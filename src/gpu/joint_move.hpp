// How the kernels of several members share memory for blocks that they bring each other
// (CollectiveQueue::move_jointly()): the layout of a member's joint memory, and what of a block
// each thread block works at. The same in all processes, whatever their devices.
//
// Each member stores its blocks in the memory of those who get them; who waits for them writes them
// where they belong. Short ones travel in dense lines (gpu/lines.hpp), of which that memory has
// room for each sender's. Others go to a slot that it has for each sender, and then flags are set.
// A block that is the same for all may lie in its sender's memory, in the slot that no other member
// has there: flags are set as before.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "gpu/joint.hpp"
#include "gpu/lines.hpp"

namespace mpress::gpu::joint_move {

using joint::blocks_for;
using joint::most_blocks;
using joint::most_members;
using joint::share_at;

/// A flag holds the number of a call. One for each sender and thread block of its block.
MPRESS_HOST_DEVICE constexpr std::size_t flag_at(unsigned sender, unsigned block) {
  return (sender * most_blocks + block) * sizeof(std::uint32_t);
}
inline constexpr std::size_t flags_bytes = most_members * most_blocks * sizeof(std::uint32_t);

/// A block of so many bytes may travel in lines: less the more members there are, so that the
/// memory of a communicator of short calls stays small.
MPRESS_HOST_DEVICE constexpr std::size_t most_in_lines(unsigned members) {
  return (std::size_t{2} << 20) / members;
}

/// Memory of the host has none.
MPRESS_HOST_DEVICE constexpr Lines block_lines(unsigned members) {
  return {flags_bytes, dense_bytes(most_in_lines(members))};
}

/// Behind them lie the slots.
constexpr std::size_t slots_at(unsigned members, bool has_lines) {
  return has_lines ? block_lines(members).end(members) : flags_bytes;
}
/// Where a sender's block comes, in memory whose slots have `room` bytes each.
MPRESS_HOST_DEVICE constexpr std::size_t slot_at(std::size_t slots_at, unsigned sender,
                                                 std::size_t room) {
  return slots_at + sender * room;
}

/// Room for blocks of so many bytes; not more for each size that comes.
constexpr std::size_t room_for(std::size_t bytes) {
  constexpr std::size_t least = 64 << 10;
  return bytes < least ? least : std::bit_ceil(bytes);
}

constexpr std::size_t memory_bytes(unsigned members, std::size_t room, bool has_lines) {
  return slot_at(slots_at(members, has_lines), members, room);
}
/// The room of memory of so many bytes.
constexpr std::size_t room_in(unsigned members, std::size_t bytes, bool has_lines) {
  return (bytes - slots_at(members, has_lines)) / members;
}

/// What has to be zero before the memory is used.
constexpr std::size_t cleared_bytes(unsigned members, bool has_lines) {
  return slots_at(members, has_lines);
}

}  // namespace mpress::gpu::joint_move
