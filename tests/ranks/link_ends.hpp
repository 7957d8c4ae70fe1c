// The links that the conformance program runs, each between three ranks: by MPI, and the peer and
// the host link with simulated GPUs.
#pragma once

#include <sched.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "gpu/loaded_gpu.hpp"
#include "link/host/host_link.hpp"
#include "link/mpi/mpi_link.hpp"
#include "link/peer/peer_link.hpp"
#include "ranks.hpp"
#include "unit/queues.hpp"

namespace mpress::ranks {

inline constexpr std::size_t chunk_bytes = 48'000;
inline constexpr std::size_t last_bytes = 1236;
inline constexpr std::uint32_t chunks = 7;
inline constexpr std::array<std::uint8_t, 16> nonce = {4, 5, 6};

inline std::size_t bytes_of(std::uint64_t chunk) {
  return chunk + 1 < chunks ? chunk_bytes : last_bytes;
}

/// A link between the ranks, and how the test writes to it and reads from it.
class End {
 public:
  explicit End(Rank& rank) : rank(rank) {}
  virtual ~End() = default;
  virtual link::Link& link() = 0;
  virtual link::Link* other() = 0;  ///< what Expected::other is
  virtual int device() const = 0;
  virtual void write(std::byte* place, const std::byte* data, std::size_t bytes) = 0;
  virtual std::vector<std::byte> read(const link::Arrived& arrived) = 0;
  virtual void close() = 0;
  virtual bool sees_ended_senders() const = 0;
  virtual bool frees_cancelled() const = 0;  ///< before the end

  Rank& rank;
  std::uint64_t operations = 0;
};

class ByMpi final : public End {
 public:
  explicit ByMpi(Rank& rank) : End(rank) {
    const auto& world = *rank.contexts.world();
    link_.open(world.comm(), world.tags(), memory_, pacer_);
  }
  link::Link& link() override { return link_; }
  link::Link* other() override { return nullptr; }
  int device() const override { return gpu::host; }
  void write(std::byte* place, const std::byte* data, std::size_t bytes) override {
    std::memcpy(place, data, bytes);
  }
  std::vector<std::byte> read(const link::Arrived& arrived) override {
    return {arrived.data, arrived.data + arrived.bytes};
  }
  bool sees_ended_senders() const override { return false; }
  bool frees_cancelled() const override { return false; }
  void close() override { CHECK(farewell(-1)); }

  link::MpiLink& mpi_link() { return link_; }

  bool farewell(int ended) {
    Parting parting{*this, ended};
    return link_.say_farewell(parting);
  }

 private:
  struct Parting final : link::MpiLink::Parting {
    Parting(ByMpi& end, int ended) : end(end), ended(ended) {}
    void proceed() override {
      end.link_.advance();
      if (!end.link_.drain_one(end.memory_.pool)) ::sched_yield();
    }
    bool is_idle() const override { return end.link_.outbox.empty(); }
    std::uint64_t pending() const override { return 0; }
    void close_others() override {}
    int find_ended() const override { return ended; }
    ByMpi& end;
    int ended;
  };
  struct Memory final : link::MpiLink::Memory {
    memory::Buffer take(int, std::size_t bytes) override { return pool.take(bytes); }
    memory::BufferPool pool{64u << 20};
  };
  Memory memory_;
  link::Pacer pacer_;
  link::MpiLink link_;
};

/// A link in memory that readers open, which nobody shares before it is needed.
inline void connect(End& end) {
  for (int round = 0; round < 2; ++round) {
    if (end.rank.rank != 0) end.link().connect(0, 0);
    end.rank.barrier();
    const int readers[] = {1, 2};
    link::Transfer none;
    if (end.rank.rank == 0) end.link().reserve({readers, 0, chunks, chunk_bytes, 0}, none);
    if (none.chunks > 0) end.link().abandon(none);
    end.rank.barrier();
  }
  if (end.rank.rank != 0) end.link().connect(0, 0);
  end.rank.barrier();
}

/// What `own` is on all ranks.
template <class T>
std::vector<T> of_all(Rank& rank, const T& own) {
  std::vector<T> all(static_cast<std::size_t>(rank.size));
  mpi::calls().Allgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE,
                         MPI_COMM_WORLD);
  return all;
}

inline void choose_simulated_gpu() {
  ::setenv("SIMULATED_GPU_DEVICES", "2", 0);
  gpu::choose(MPRESS_SIMULATED_GPU);
  CHECK(gpu::gpu() != nullptr);
}

class ByPeer final : public End {
 public:
  explicit ByPeer(Rank& rank) : End(rank) {
    choose_simulated_gpu();
    const auto all = of_all(rank, link_.open(nonce, rank.rank, true));
    std::vector<link::HostRank> ranks;
    for (int r = 0; r < rank.size; ++r) ranks.push_back({r, all[static_cast<std::size_t>(r)]});
    link_.set_ranks(ranks, 64u << 20);
    queue_ = gpu::gpu()->open_queue(0);
    connect(*this);
  }
  link::Link& link() override { return link_; }
  link::Link* other() override { return nullptr; }
  int device() const override { return 0; }
  void write(std::byte* place, const std::byte* data, std::size_t bytes) override {
    put(*queue_, place, data, bytes);
  }
  std::vector<std::byte> read(const link::Arrived& arrived) override {
    return mpress::bytes_of(*queue_, arrived.data, arrived.bytes);
  }
  bool sees_ended_senders() const override { return true; }
  bool frees_cancelled() const override { return true; }
  void close() override {
    rank.barrier();
    link_.close();
    rank.barrier();
    link_.free_memory();
  }

 private:
  link::PeerLink link_;
  std::unique_ptr<Queue> queue_;
};

class ByHost final : public End {
 public:
  explicit ByHost(Rank& rank) : End(rank) {
    choose_simulated_gpu();
    const auto all = of_all(rank, link_.open(nonce, rank.rank, true));
    std::vector<link::HostLink::Neighbour> ranks;
    for (int r = 0; r < rank.size; ++r) ranks.push_back({r, all[static_cast<std::size_t>(r)]});
    link_.set_ranks(ranks, 64u << 20);
    queue_ = gpu::gpu()->open_queue(0);
    room_ = static_cast<std::byte*>(gpu::gpu()->allocate(gpu::Place::device, 0, chunk_bytes));
    connect(*this);
    CHECK(rank.rank != 0 || link_.reaches(1));
  }
  link::Link& link() override { return link_; }
  link::Link* other() override { return nullptr; }
  int device() const override { return 0; }
  void write(std::byte* place, const std::byte* data, std::size_t bytes) override {
    put(*queue_, room_, data, bytes);
    put(*queue_, place, room_, bytes);
  }
  /// By way of the device.
  std::vector<std::byte> read(const link::Arrived& arrived) override {
    CHECK(arrived.device == gpu::host);
    put(*queue_, room_, arrived.data, arrived.bytes);
    return mpress::bytes_of(*queue_, room_, arrived.bytes);
  }
  bool sees_ended_senders() const override { return true; }
  bool frees_cancelled() const override { return true; }
  void close() override {
    gpu::gpu()->release(gpu::Place::device, 0, room_);
    rank.barrier();
    link_.close();
    rank.barrier();
    link_.free_memory();
  }

 private:
  link::HostLink link_;
  std::unique_ptr<Queue> queue_;
  std::byte* room_ = nullptr;
};

}  // namespace mpress::ranks
