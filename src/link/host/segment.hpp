// What the ranks of one host tell each other about data that goes by memory of the host which both
// their GPUs have pinned. Each process has a segment, which the others map.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "gpu/gpu.hpp"
#include "link/host_memory.hpp"

namespace mpress::link {

/// A block of send staging: a piece of host memory that others map and pin.
struct SharedPiece {
  HostMemory::Address address;
  std::uint64_t bytes;
};

/// A block on its way, as one reader sees it. The owner of the segment sends it.
struct alignas(64) HostSlot {
  enum State : std::uint32_t {
    planned,  ///< its memory is reserved, and holds the block once that is published
    failed,   ///< it will never come
  };
  /// Its sequence is 0 until the block is there; then `bytes` are its bytes. Of several readers'
  /// slots the first reader's tells: see `told_by`.
  gpu::Report report;
  std::atomic<std::uint32_t> state;         ///< the sender's
  std::atomic<std::uint32_t> acknowledged;  ///< the reader's: 1 where it needs the memory no more
  std::uint32_t staging;                    ///< the block of staging memory it lies in
  std::uint32_t told_by;                    ///< the slot whose report tells of this one
  std::uint64_t offset;                     ///< in that memory
  std::uint32_t at_once;  ///< so many blocks from it on may be copied in one go, if they are there

  void plan(std::uint32_t in_staging, std::uint64_t at, std::uint32_t teller, std::uint32_t most) {
    staging = in_staging;
    offset = at;
    at_once = most;
    report = {};
    told_by = teller;
    acknowledged.store(0, std::memory_order_relaxed);
    state.store(planned, std::memory_order_release);
  }
};
static_assert(sizeof(HostSlot) == 64 && std::atomic<std::uint32_t>::is_always_lock_free);

/// Shared memory, all zero to begin with. Its pages exist once they are touched.
struct HostSegment {
  static constexpr std::size_t most_staging = 64;
  static constexpr std::size_t most_ranks = 1024;  ///< of a host
  static constexpr std::size_t most_slots = 16384;
  /// In `opened`: that rank cannot map or pin what this one shares.
  static constexpr std::uint32_t unreachable = 0xFFFFFFFF;

  std::atomic<std::uint32_t> staging_blocks;  ///< how many there are
  SharedPiece staging[most_staging];
  /// What each rank of the host has pinned; written by that rank: 0 before it has had a message
  /// from this one in device memory, then the number of staging blocks, plus one.
  std::atomic<std::uint32_t> opened[most_ranks];
  HostSlot slot[most_slots];
};

}  // namespace mpress::link
