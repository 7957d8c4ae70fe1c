// What the processes of one host tell each other of blocks in memory that they share. Each has a
// segment, which the others map; nothing in it needs a call of MPI's or of a driver's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "gpu/gpu.hpp"
#include "link/host_memory.hpp"

namespace mpress::link {

/// A block of memory that other processes may open: a device's by its handle, the host's by its
/// address.
struct SharedBlock {
  std::int32_t device;  ///< as its owner counts; that it was pinned with, where it is the host's
  std::uint64_t bytes;
  gpu::MemoryHandle handle;
  HostMemory::Address address;
};

/// A block on its way, as one reader sees it. The owner of the segment sends it.
struct alignas(64) Slot {
  enum State : std::uint32_t {
    planned,  ///< its memory is reserved, and holds the block once that is published
    there,    ///< it is published; never stored, but found by SlotLink::look()
    failed,   ///< it will never come
    // The first of a transfer may stand for all of it:
    offered,  ///< the data lies in memory of the program's, and the reader may get it from there
    getting,  ///< the reader, whose word this is, does so, and will acknowledge
    by_mpi,   ///< its chunks come by MPI; the reader acknowledges when it knows
  };
  /// Its sequence is 0 until the block is there; then `bytes` are its bytes. Blocks that are
  /// published by runs, and those with several readers, are reported once: see `reported_by`.
  gpu::Report report;
  std::atomic<std::uint32_t> state;         ///< the sender's word, but for an answer to an offer
  std::atomic<std::uint32_t> acknowledged;  ///< the reader's: 1 where it needs the memory no more
  std::uint32_t staging;                    ///< the sender's block of send staging that it lies in
  /// 0: it lies there; else in the reader's block of receive staging whose number this is, plus 1.
  std::uint16_t receive_staging;
  std::uint16_t at_once;  ///< so many blocks from it on may be read in one go, if they are there
  std::uint64_t offset;   ///< in that memory
  std::uint32_t reported_by;  ///< the slot whose report's sequence stands for this one, too
  /// The block of the program's that the message is sent from, plus one, if the reader should open
  /// it, or gets the data from there; 0: none.
  std::uint32_t block;
  std::uint64_t within;               ///< where the data begins in that block
  std::atomic<std::uint32_t> serial;  ///< of the transfer; set before `acknowledged` is 0
  /// The reader's, of an offer: 1 where it has seen it, and will take it when it is its turn.
  std::atomic<std::uint32_t> seen;

  /// Do `bytes` bytes of it lie within a block of memory of `room` bytes?
  bool lies_in(std::uint64_t room, std::uint64_t bytes) const {
    return offset <= room && bytes <= room - offset;
  }

  /// For a block that will lie `at` bytes behind where that of `first` does: not there yet.
  void plan(const Slot& first, std::uint64_t at, std::uint32_t reporter) {
    plan(first.staging, first.receive_staging, first.offset + at, first.at_once, reporter);
  }
  void plan(std::uint32_t in_staging, std::uint16_t in_receive_staging, std::uint64_t at,
            std::uint16_t most, std::uint32_t reporter) {
    staging = in_staging;
    receive_staging = in_receive_staging;
    at_once = most;
    offset = at;
    report = {};
    block = 0;
    reported_by = reporter;
    acknowledged.store(0, std::memory_order_release);  // behind the serial
    state.store(planned, std::memory_order_relaxed);
  }
};
static_assert(sizeof(Slot) == 64 && std::atomic<std::uint32_t>::is_always_lock_free);

/// Shared memory, all zero to begin with. Its pages exist once they are touched. A link's own
/// segment may have more.
struct SlotSegment {
  static constexpr std::uint32_t layout = 7;
  static constexpr std::size_t most_staging = 64;
  static constexpr std::size_t most_ranks = 1024;  ///< of a host
  static constexpr std::size_t most_slots = 16384;
  /// In `opened`: that rank cannot open what this one shares.
  static constexpr std::uint32_t unreachable = 0xFFFFFFFF;

  std::uint32_t version;                      ///< `layout`
  std::atomic<std::uint32_t> staging_blocks;  ///< blocks of send staging: how many there are
  SharedBlock staging[most_staging];
  /// What each rank of the host has opened; written by that rank: 0 before it has had a message
  /// from this one in device memory, then the number of staging blocks, plus one.
  std::atomic<std::uint32_t> opened[most_ranks];
  Slot slot[most_slots];
};

/// Has the sender, or its device, published what tells of this slot?
inline bool is_published(const SlotSegment& segment, const Slot& slot) {
  const std::uint32_t reporter = slot.reported_by;
  if (reporter >= SlotSegment::most_slots) return false;
  auto& sequence = const_cast<std::uint32_t&>(segment.slot[reporter].report.sequence);
  return std::atomic_ref(sequence).load(std::memory_order_acquire) != 0;
}

/// A block as its reader sees it.
struct Arrival {
  Slot::State state;
  const std::byte* data;
  std::size_t bytes;
  int device;                 ///< whose queues reach it, or the host
  std::uint32_t block = 0;    ///< Slot::block, of what is `there`
  std::uint32_t at_once = 1;  ///< Slot::at_once
  bool is_near = false;       ///< it lies in receive staging, of `device`
  std::uint32_t serial = 0;   ///< Slot::serial, of what this process gets
};

}  // namespace mpress::link
