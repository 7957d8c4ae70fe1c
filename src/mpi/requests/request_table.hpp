// What mpress keeps beside MPI's requests. Requests stay real MPI handles.
//
// MPI frees a handle when its request completes and may give it to another thread at once.
// Whoever completes a request therefore claims its entry before asking MPI, so that nobody else
// finds it under the recycled handle, and removes exactly that entry afterwards.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "mpi/calls/calls.hpp"
#include "mpi/requests/request.hpp"

namespace mpress::engine {

class RequestTable {
 public:
  RequestTable() = default;
  RequestTable(const RequestTable&) = delete;
  RequestTable& operator=(const RequestTable&) = delete;

  /// Keeps `entry`, filed under MPI's `request`, until it is removed.
  void insert(MPI_Request request, std::shared_ptr<Request> entry);

  /// The entry of `request`, or null. It stays in the table.
  Request* find(MPI_Request request);

  /// The same, and where there is no other, that which a call has claimed.
  Request* find_claimed_too(MPI_Request request);

  /// The same for a call that may complete the request: no other call finds the entry until it is
  /// released, unless it is persistent, and so keeps its handle.
  Request* claim(MPI_Request request);
  static void release(Request* entry) { entry->claimed_.store(false, std::memory_order_relaxed); }

  /// Takes `entry` out of the table.
  std::shared_ptr<Request> remove(Request* entry);

  bool empty() const { return size_.load(std::memory_order_relaxed) == 0; }

 private:
  struct alignas(64) Shard {
    std::atomic_flag locked = ATOMIC_FLAG_INIT;
    std::array<Request*, 30> buckets{};
  };
  static constexpr std::size_t shard_count = 64;

  template <typename Take>
  Request* search(MPI_Request request, Take take);

  static std::uint64_t hash(std::uintptr_t key) { return key * 0x9E3779B97F4A7C15u; }
  Shard& shard_of(std::uintptr_t key) { return shards_[hash(key) >> 58]; }
  static Request*& bucket_of(Shard& shard, std::uintptr_t key) {
    return shard.buckets[(hash(key) >> 32) % shard.buckets.size()];
  }

  std::array<Shard, shard_count> shards_;
  std::atomic<std::int64_t> size_{0};
};

}  // namespace mpress::engine
