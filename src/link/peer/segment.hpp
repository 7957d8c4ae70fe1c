// What the ranks of one host tell each other about data that goes from GPU to GPU. Each process has
// a segment, which the others map; nothing in it needs a call of MPI's or of a driver's.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "gpu/gpu.hpp"
#include "link/host_memory.hpp"
#include "link/link.hpp"

namespace mpress::link {

/// A block of device memory that other processes may open.
struct SharedBlock {
  std::int32_t device;  ///< as its owner counts
  std::uint64_t bytes;
  gpu::MemoryHandle handle;
};

/// A chunk on its way, as one reader sees it. The owner of the segment sends it.
struct alignas(64) Slot {
  enum State : std::uint32_t {
    planned,  ///< its memory is reserved, and holds the chunk once that is published
    there,    ///< it is published; never stored, but told by PeerLink::look()
    failed,   ///< it will never come
    // The first of a transfer may stand for all of it:
    offered,  ///< the data lies in memory of the program's, and the reader may get it from there
    getting,  ///< the reader, whose word this is, does so, and will acknowledge
    by_mpi,   ///< its chunks come by MPI; the reader acknowledges when it knows
  };
  /// Its sequence is 0 until the chunk is there; then `bytes` are its bytes. Chunks that are not
  /// encoded are published by runs, and those with several readers once: see `told_by`.
  Report report;
  std::atomic<std::uint32_t> state;         ///< the sender's word, but for an answer to an offer
  std::atomic<std::uint32_t> acknowledged;  ///< the reader's: 1 where it needs the memory no more
  std::uint32_t staging;
  /// Where it lies: 0: in that block of the sender's staging memory; else in the reader's, in the
  /// block for this sender whose number this is, plus one.
  std::uint32_t receive_staging;
  std::uint64_t offset;  ///< there
  /// The block of the program's that the message is sent from, plus one, if the reader should open
  /// it, or gets the data from there; 0: none.
  std::uint32_t block;
  std::uint32_t told_by;              ///< the slot whose report's sequence tells of this one, too
  std::uint64_t within;               ///< where the data begins in that block
  std::atomic<std::uint32_t> serial;  ///< of the transfer; set before `acknowledged` is 0
  /// The reader's, of an offer: 1 where it has seen it, and will take it when it is its turn.
  std::atomic<std::uint32_t> seen;

  /// For a chunk that will lie there: not there yet.
  void plan(std::uint32_t in_staging, std::uint32_t in_receive_staging, std::uint64_t at,
            std::uint32_t teller) {
    staging = in_staging;
    receive_staging = in_receive_staging;
    offset = at;
    report = {};
    block = 0;
    told_by = teller;
    acknowledged.store(0, std::memory_order_release);  // behind the serial
    state.store(planned, std::memory_order_relaxed);
  }
};
static_assert(sizeof(Slot) == 64 && std::atomic<std::uint32_t>::is_always_lock_free);

/// Shared memory, all zero to begin with. Its pages exist once they are touched.
struct PeerSegment {
  static constexpr std::uint32_t layout = 6;
  static constexpr std::size_t most_staging = 64;
  static constexpr std::size_t most_blocks = 256;
  static constexpr std::size_t most_receive_staging = 4;  ///< for each pair of ranks
  static constexpr std::size_t most_ranks = 1024;         ///< of a host
  static constexpr std::size_t word_bits = 64;
  static constexpr std::size_t most_slots = 16384;
  /// In `opened`: that rank cannot open what this one shares.
  static constexpr std::uint32_t unreachable = 0xFFFFFFFF;

  std::uint32_t version;                      ///< `layout`
  std::int32_t rank;                          ///< of the owner, in MPI_COMM_WORLD
  std::atomic<std::uint32_t> staging_blocks;  ///< blocks of send staging: how many there are
  SharedBlock staging[most_staging];
  std::atomic<std::uint32_t> blocks;  ///< of the program's
  SharedBlock block[most_blocks];
  /// What each rank of the host has opened; written by that rank: 0 before it has had a message
  /// from this one in device memory, then the number of staging blocks, plus one.
  std::atomic<std::uint32_t> opened[most_ranks];
  /// The blocks that each rank has opened, a bit for each; written by that rank.
  std::atomic<std::uint64_t> opened_blocks[most_ranks][most_blocks / word_bits];
  /// Bytes that messages to each rank would find room in, if that had receive staging for them.
  std::atomic<std::uint64_t> wanted[most_ranks];
  /// Each rank's receive staging for messages of this one, and how many blocks there are; written
  /// by that rank.
  std::atomic<std::uint32_t> receive_staging_blocks[most_ranks];
  SharedBlock receive_staging[most_ranks][most_receive_staging];
  /// The long offer that was taken last: its first slot, plus one, and above that the rank that
  /// did, plus one. One rank at a time reads much from this one's memory.
  std::atomic<std::uint64_t> reader;
  Slot slot[most_slots];
};

/// Has the sender, or its device, published what tells of this slot?
inline bool is_published(const PeerSegment& segment, const Slot& slot) {
  const std::uint32_t teller = slot.told_by;
  if (teller >= PeerSegment::most_slots) return false;
  auto& sequence = const_cast<std::uint32_t&>(segment.slot[teller].report.sequence);
  return std::atomic_ref(sequence).load(std::memory_order_acquire) != 0;
}

/// Where a process keeps its segment, for others of its host to find.
using SegmentAddress = HostMemory::Address;

/// A segment in memory that this process maps.
class MappedSegment {
 public:
  /// A segment of this process's own; empty where the system refuses.
  static MappedSegment create(const HostMemory::Nonce& nonce, int rank);

  /// That of `rank`; empty where this process cannot map it, or finds another there.
  static MappedSegment open(const SegmentAddress& address, const HostMemory::Nonce& nonce,
                            int rank);

  PeerSegment* operator->() const { return reinterpret_cast<PeerSegment*>(memory_.data()); }
  PeerSegment& operator*() const { return *operator->(); }
  void* data() const { return memory_.data(); }
  explicit operator bool() const { return static_cast<bool>(memory_); }

  /// Of one that create() made.
  SegmentAddress address() const { return memory_.address(); }

 private:
  HostMemory memory_;
};

}  // namespace mpress::link
