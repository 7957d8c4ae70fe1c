// What the ranks of one host tell each other about messages that go from GPU to GPU. Each process
// has a segment, which the others map; nothing in it needs a call of MPI's or of a driver's.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "gpu/gpu.hpp"

namespace mpress::link {

/// A block of device memory that other processes may open.
struct SharedBlock {
  std::int32_t device;  ///< as its owner counts
  std::uint64_t bytes;
  gpu::MemoryHandle handle;
};

/// What tells that a chunk is where it should be: written by the sender's device itself, in one
/// store of 16 bytes behind the chunk, or by its host.
using Report = gpu::Report;

/// A chunk on its way. The owner of the segment sends it.
struct alignas(64) Parcel {
  enum State : std::uint32_t {
    planned,  ///< its memory is reserved, and holds the chunk once that is published
    there,    ///< it is published; never stored, but told by PeerLink::look()
    failed,   ///< it will never come
    // The first of a shipment may stand for all of it:
    offered,  ///< the data lies in memory of the program's, and the receiver may have it from there
    borrowed,  ///< the receiver, whose word this is, does so, and will say `taken`
    by_mpi,    ///< its chunks come by MPI; the receiver says `taken` when it knows
  };
  /// Its sequence is 0 until the chunk is there; then `bytes` are its bytes. Chunks that are not
  /// encoded are published by runs: see `told_by`.
  Report report;
  std::atomic<std::uint32_t> state;  ///< the sender's word, but for an answer to an offer
  std::atomic<std::uint32_t> taken;  ///< the receiver's: 1 where the memory is free again
  std::uint32_t slab;
  /// Where it lies: 0: in that slab of the sender's; else in the receiver's memory that the
  /// sender's messages land in, whose number this is, plus one.
  std::uint32_t landing;
  std::uint64_t offset;  ///< there
  /// The block of the program's that the message is sent from, plus one, if the receiver should
  /// open it, or takes the data from there; 0: none.
  std::uint32_t block;
  std::uint32_t told_by;              ///< the parcel whose report's sequence tells of this one, too
  std::uint64_t within;               ///< where the data begins in that block
  std::atomic<std::uint32_t> serial;  ///< of the shipment; set before `taken` is 0
  /// The receiver's, of an offer: 1 where it has seen it, and will take it when it is its turn.
  std::atomic<std::uint32_t> seen;
};
static_assert(sizeof(Parcel) == 64 && std::atomic<std::uint32_t>::is_always_lock_free);

/// Shared memory, all zero to begin with. Its pages exist once they are touched.
struct PeerSegment {
  static constexpr std::uint32_t layout = 5;
  static constexpr std::size_t most_slabs = 64;
  static constexpr std::size_t most_blocks = 256;
  static constexpr std::size_t most_landings = 4;  ///< for each pair of ranks
  static constexpr std::size_t most_ranks = 1024;  ///< of a host
  static constexpr std::size_t word_bits = 64;
  static constexpr std::size_t parcels = 16384;
  /// In `opened`: that rank cannot open what this one shares.
  static constexpr std::uint32_t unreachable = 0xFFFFFFFF;

  std::array<std::uint8_t, 16> nonce;  ///< of the job
  std::uint32_t version;               ///< `layout`
  std::int32_t rank;                   ///< of the owner, in MPI_COMM_WORLD
  std::atomic<std::uint32_t> slabs;    ///< of mpress's: how many there are
  SharedBlock slab[most_slabs];
  std::atomic<std::uint32_t> blocks;  ///< of the program's
  SharedBlock block[most_blocks];
  /// What each rank of the host has opened; written by that rank: 0 before it has had a message
  /// from this one in device memory, then the number of slabs, plus one.
  std::atomic<std::uint32_t> opened[most_ranks];
  /// The blocks that each rank has opened, a bit for each; written by that rank.
  std::atomic<std::uint64_t> opened_blocks[most_ranks][most_blocks / word_bits];
  /// Bytes that messages to each rank would find room in, if they could land there.
  std::atomic<std::uint64_t> wanted[most_ranks];
  /// Memory of each rank's that messages to it land in, and how much of that there is; written by
  /// that rank.
  std::atomic<std::uint32_t> landings[most_ranks];
  SharedBlock landing[most_ranks][most_landings];
  /// The long offer that was borrowed last: its first parcel, plus one, and above that the rank
  /// that did, plus one. One rank at a time reads much from this one's memory.
  std::atomic<std::uint64_t> reader;
  Parcel parcel[parcels];
};

/// Has the sender, or its device, published what tells of this parcel?
inline bool is_published(const PeerSegment& segment, const Parcel& parcel) {
  const std::uint32_t teller = parcel.told_by;
  if (teller >= PeerSegment::parcels) return false;
  auto& sequence = const_cast<std::uint32_t&>(segment.parcel[teller].report.sequence);
  return std::atomic_ref(sequence).load(std::memory_order_acquire) != 0;
}

/// Where a process keeps its segment, for others of its host to find.
struct SegmentAddress {
  std::int32_t pid = 0;
  std::int32_t file = -1;  ///< a descriptor of that process; negative: it has no segment
};

/// A segment in this process's memory. It ends with the last process that maps it, however those
/// end: there is no file to be left behind.
class MappedSegment {
 public:
  MappedSegment() = default;
  MappedSegment(MappedSegment&& other) noexcept;
  MappedSegment& operator=(MappedSegment&& other) noexcept;
  ~MappedSegment();

  /// A segment of this process's own; empty where the system refuses.
  static MappedSegment create(const std::array<std::uint8_t, 16>& nonce, int rank);

  /// That of `rank`; empty where this process cannot map it, or finds another there.
  static MappedSegment open(const SegmentAddress& address,
                            const std::array<std::uint8_t, 16>& nonce, int rank);

  PeerSegment* operator->() const { return segment_; }
  void* data() const { return segment_; }
  explicit operator bool() const { return segment_ != nullptr; }

  /// Of one that create() made.
  SegmentAddress address() const;

 private:
  PeerSegment* segment_ = nullptr;
  int file_ = -1;
};

}  // namespace mpress::link
