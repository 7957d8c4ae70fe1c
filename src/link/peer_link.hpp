// The peer link: chunks of messages from a GPU to another of the same host, by way of memory of the
// sender's device that the receiver's device reaches.
//
// The sender puts chunks into memory of its own, which it has shared, and is done with them: no
// send waits for its receiver. The receiver copies or decodes them from there, and says so; then
// the memory is free for others. It is set up in slabs, when messages need it, up to a limit, and
// each receiver opens a slab once, when it next gets a message from there: until then, and where
// memory is short, messages take another way.
//
// MPI carries the messages' headers; nothing here knows MPI or elements. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "gpu/gpu.hpp"
#include "link/peer_segment.hpp"
#include "memory/ranges.hpp"

namespace mpress::link {

/// A rank of this host, and where its segment is.
struct HostRank {
  int rank;  ///< in MPI_COMM_WORLD
  SegmentAddress segment;
};

/// Room for the chunks of one message: parcels of this process's segment, in a row.
struct Shipment {
  std::uint32_t first = 0;
  std::uint32_t chunks = 0;
};

class PeerLink {
 public:
  /// Makes this process's segment, for others to find at its address; without one (as the system
  /// refuses, or `wanted` says) there is no link.
  SegmentAddress open(const std::array<std::uint8_t, 16>& nonce, int rank, bool wanted);

  /// Notes the ranks of this host, this one included, in an order that all of them share. At most
  /// `limit` bytes of device memory will be held.
  void meet_host(const std::vector<HostRank>& ranks, std::size_t limit);

  // Sending.

  /// Might messages to this rank go this way, now or once the two have met? Like reaches(), it
  /// costs a few nanoseconds.
  bool may_reach(int rank) const;

  /// Has it opened what messages go through?
  bool reaches(int rank) const;

  /// Room for `chunks` chunks of up to `bytes` bytes each, in memory of `device` that `rank` has
  /// opened; `message` is the serial number for cancel(). False where there is none now: then room
  /// is made, and found once the rank has opened it.
  bool reserve(int rank, int device, std::size_t chunks, std::size_t bytes, std::uint64_t message,
               Shipment& shipment);

  /// Where a chunk goes: device memory, 256-byte aligned. Chunks of a multiple of 256 bytes lie one
  /// behind the other.
  std::byte* place(const Shipment& shipment, std::size_t chunk);

  /// A chunk is where it should be, and has `bytes` bytes.
  void send(const Shipment& shipment, std::size_t chunk, std::size_t bytes);

  /// What was not sent of a shipment will never come.
  void fail(const Shipment& shipment);

  /// Nobody will ask for the chunks of this message.
  void cancel(std::uint64_t message);

  // Receiving.

  /// To be called when a message from `rank` has come to memory of `device`: opens what that rank
  /// shares. Costs a few nanoseconds mostly.
  void meet(int rank, int device);

  /// Has this process ever been sent anything this way?
  bool is_used() const { return is_used_.load(std::memory_order_relaxed); }

  /// A chunk as its receiver sees it.
  struct Arrival {
    Parcel::State state;
    const std::byte* data;  ///< device memory
    std::size_t bytes;
    int device;  ///< whose lanes reach it
  };

  /// Is the shipment whose first parcel has this number one of `rank`'s, as far as can be told?
  bool knows(int rank, std::uint64_t parcel, std::uint64_t chunks) const;

  /// Looks at a parcel of `rank`'s, for lanes of `device` if those reach it.
  Arrival look(int rank, std::uint64_t parcel, int device);

  /// Its memory is not needed any more.
  void take(int rank, std::uint64_t parcel);

  /// Does the process of `rank` still exist?
  bool lives(int rank) const;

  // The end: nothing is under way, and first all ranks close, then each releases.

  void close();
  void release();

 private:
  struct Slab {
    int device;
    std::byte* memory;
    memory::Ranges free;
  };
  struct Sent {
    Shipment shipment;
    std::uint64_t message;
    std::uint64_t begin;  ///< of its memory in the slab
    std::uint64_t bytes;
    std::uint32_t slab;
  };
  /// What a rank of this host shares.
  struct Source {
    MappedSegment segment;
    int home = gpu::host;  ///< the device that has opened all of it so far
    bool is_tried = false;
    std::atomic<std::uint32_t> seen{0};      ///< slabs opened
    std::atomic<bool> is_over{false};        ///< no more of them can be
    std::vector<std::vector<void*>> opened;  ///< by device and slab; null: not opened
  };

  int index_of(int rank) const;
  bool reserve_in(int device, std::uint32_t opened, std::size_t chunks, std::uint64_t each,
                  std::uint64_t message, Shipment& shipment);
  void reap(std::size_t count);
  bool is_over(const Sent& sent) const;
  void grow(int device, std::uint64_t bytes);
  void open_new(int rank, Source& source, int device);
  void* open_for(Source& source, std::uint32_t slab, int device);

  MappedSegment own_;
  std::array<std::uint8_t, 16> nonce_{};
  std::vector<HostRank> ranks_;  ///< of this host
  std::vector<int> index_;       ///< in ranks_, by rank in MPI_COMM_WORLD; negative: elsewhere
  std::size_t own_index_ = 0;
  std::size_t limit_ = 0;

  std::mutex sending_;
  std::vector<Slab> slabs_;
  std::size_t held_ = 0;        ///< bytes of slabs
  std::uint64_t patience_ = 0;  ///< reservations until memory is asked for again
  memory::Ranges parcels_{PeerSegment::parcels};
  std::deque<Sent> sent_;

  std::mutex receiving_;
  std::vector<Source> sources_;  ///< as ranks_
  std::atomic<bool> is_used_{false};
  std::atomic<bool> is_said_{false};  ///< that something cannot be opened
};

}  // namespace mpress::link
