// The host link: data between GPUs of one host that do not reach each other, by way of host memory
// that both processes map and both GPUs have pinned. One copy over the bus out, one in; chunk by
// chunk, so that the two overlap.
//
// The sender's device puts blocks into send staging, which the sender shares, and publishes them by
// itself: no send waits for its readers. Those copy from there to their devices, and acknowledge;
// then the memory is free for others. It is made when messages need it, up to a limit, and each
// reader maps and pins a piece of it once, when it next gets a message from there: until then, and
// where memory is short, messages take another way.
//
// Processes find each other's memory through /proc, so they need one space of process numbers and
// one user. Nothing here knows MPI or elements. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "link/host/segment.hpp"
#include "link/host_memory.hpp"
#include "link/link.hpp"
#include "link/sizes.hpp"
#include "memory/ranges.hpp"

namespace mpress::link {

class HostLink final : public MemoryLink {
 public:
  /// A rank of this host, and where its segment is.
  struct Neighbour {
    int rank;  ///< in MPI_COMM_WORLD
    HostMemory::Address segment;
  };

  /// Makes this process's segment, for others to find at its address; without one (as the system
  /// refuses, or `wanted` says) there is no link.
  HostMemory::Address open(const HostMemory::Nonce& nonce, int rank, bool wanted);

  /// Notes the ranks of this host, this one included, in an order that all of them share. At most
  /// `limit` bytes of host memory will be held.
  void set_ranks(const std::vector<Neighbour>& ranks, std::size_t limit);

  Kind kind() const override { return Kind::host; }
  /// Is there such a link in this process?
  bool is_open() const override { return static_cast<bool>(own_); }

  bool may_reach(int rank) const override;
  bool reaches(int rank) const override;

  /// Maps what that rank shares, and pins it for `device`. Where that cannot be done, it is said
  /// once, and the rank sends by other ways from then on. Pinning takes some milliseconds, once
  /// for each piece.
  bool connect(int rank, int device) override {
    open_shared(rank, device);
    return may_read(rank);
  }
  bool is_read_by(int rank, int device) override;
  bool lives(int rank) const override;

  /// Frees the memory of what was acknowledged, as reserve() does.
  void advance() override;

  /// Has this process ever been sent anything this way?
  bool is_used() const override { return is_used_.load(std::memory_order_relaxed); }

  // Writing.
  bool reserve(const Reservation& wanted, Transfer& transfer) override;
  void lay_out(const Transfer& transfer) override;
  bool devices_publish() const override { return is_mapped_.load(std::memory_order_relaxed); }
  std::byte* place(const Transfer& transfer, std::size_t chunk, std::size_t) override {
    return transfer.place(chunk);
  }
  bool is_free(const Transfer& transfer, std::size_t chunk) const override;
  Report* report(const Transfer& transfer, std::size_t chunk) override;
  void publish(const Transfer& transfer, std::size_t chunk, std::size_t bytes) override;
  void release(const Transfer& transfer) override;
  bool fail(const Transfer& transfer) override;
  void abandon(const Transfer& transfer) override;
  void cancel(std::uint64_t operation) override;

  // Reading.
  bool knows(int rank, Route route, std::uint64_t chunks) override;
  std::unique_ptr<Inbound> receive(const Expected& expected) override;
  bool discard(int rank, Route route, std::uint64_t chunks) override;

  void close() override;
  void free_memory() override;

 private:
  class Reader;

  /// A piece of host memory that queues of this process reach.
  struct Pinned {
    HostMemory memory;
    int device;  ///< that it was pinned with
    std::uint64_t bytes;
  };
  struct Staging {
    Pinned piece;
    memory::Ranges free;
  };
  struct Sent {
    Transfer transfer;
    std::uint64_t operation;
    std::uint64_t begin;    ///< of its memory in the staging
    std::uint32_t staging;  ///< which one
    Account* account;       ///< null: nobody's
  };
  /// What a rank of this host shares, as this process has it.
  struct Source {
    HostMemory segment;
    std::atomic<std::uint32_t> seen{0};  ///< pieces of its send staging that are pinned
    std::atomic<bool> is_known{false};   ///< its slots can be read
    std::atomic<bool> is_over{false};    ///< no more can be opened
    std::deque<Pinned> staging;          ///< `seen` of them; under receiving_
  };

  HostSegment& own() const { return *reinterpret_cast<HostSegment*>(own_.data()); }
  static HostSegment& of(const Source& source) {
    return *reinterpret_cast<HostSegment*>(source.segment.data());
  }
  int index_of(int rank) const;
  bool may_read(int rank) const;
  void open_shared(int rank, int device);
  Source& source_of(int rank) { return sources_[static_cast<std::size_t>(index_of(rank))]; }
  bool has_ended(int rank, std::uint64_t& looks) const;
  const char* open_new(const Neighbour& neighbour, Source& source, int device);
  gpu::State look(int rank, std::uint64_t number, Arrived& arrived);

  static std::uint32_t at_once(const Transfer& transfer);
  std::uint32_t opened_by_all(std::span<const int> readers) const;
  bool reserve_in(std::uint32_t number, const Reservation& wanted, Transfer& planned);
  void grow(int device, std::uint64_t bytes);
  const char* share(int device, std::uint64_t bytes);
  void reclaim(std::size_t count);
  bool is_over(const Sent& sent) const;
  void acknowledge_all(const Transfer& transfer);
  void say_refused(const char* problem);

  HostMemory own_;
  HostMemory::Nonce nonce_{};
  int rank_ = -1;
  std::vector<Neighbour> ranks_;  ///< of this host
  std::vector<int> index_;        ///< in ranks_, by rank in MPI_COMM_WORLD; negative: elsewhere
  std::size_t own_index_ = 0;
  std::size_t limit_ = 0;

  std::mutex sending_;
  std::deque<Staging> staging_;
  std::size_t held_ = 0;             ///< bytes of that
  std::uint64_t until_growing_ = 0;  ///< reservations until memory is asked for again
  memory::Ranges free_slots_{HostSegment::most_slots};
  std::deque<Sent> sent_;
  FullLooks full_looks_;  ///< of those
  /// By the first slot of a transfer: its sender has not done with it.
  std::array<std::atomic<bool>, HostSegment::most_slots> is_held_{};
  /// By the first slot of a reader's row: its rank.
  std::array<int, HostSegment::most_slots> reader_of_{};
  int own_mapped_by_ = gpu::host;        ///< the device that the own segment was mapped with
  std::atomic<bool> is_mapped_{false};   ///< queues may write there
  std::atomic<bool> is_refused_{false};  ///< memory cannot be shared, or not be pinned

  std::mutex receiving_;
  std::vector<Source> sources_;  ///< as ranks_
  std::atomic<bool> is_used_{false};
  std::atomic<bool> is_said_{false};
};

}  // namespace mpress::link
