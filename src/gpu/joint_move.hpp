// How the kernels of several members share memory for blocks that they bring each other
// (Queue::move_jointly()): the layout of a member's joint memory, and what of a block each thread
// block works at. The same in all processes, whatever their devices.
//
// Each member stores its blocks in the memory of those who get them, which has a slot for each
// sender, and then flags; who waits for them writes them where they belong. A block that is the
// same for all may lie in its sender's memory, in the slot that no other member has there: flags
// are set as before.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "gpu/joint.hpp"

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

/// Where a sender's block comes, in memory whose slots have `room` bytes each.
MPRESS_HOST_DEVICE constexpr std::size_t slot_at(unsigned sender, std::size_t room) {
  return flags_bytes + sender * room;
}

/// Room for blocks of so many bytes; not more for each size that comes.
constexpr std::size_t room_for(std::size_t bytes) {
  constexpr std::size_t least = 64 << 10;
  return bytes < least ? least : std::bit_ceil(bytes);
}

constexpr std::size_t memory_bytes(unsigned members, std::size_t room) {
  return slot_at(members, room);
}
/// The room of memory of so many bytes.
constexpr std::size_t room_in(unsigned members, std::size_t bytes) {
  return (bytes - flags_bytes) / members;
}

/// What has to be zero before the memory is used.
inline constexpr std::size_t cleared_bytes = flags_bytes;

}  // namespace mpress::gpu::joint_move
