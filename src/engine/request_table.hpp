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
#include <optional>

#include "engine/receive.hpp"
#include "engine/send.hpp"
#include "link/mpi.hpp"
#include "memory/buffer_pool.hpp"

namespace mpress::engine {

/// Starts a send of a frame in the mode of a persistent send.
using StartSend = int (*)(const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);

/// One request that needs work when it completes.
struct Pending {
  std::uintptr_t key = 0;
  std::atomic<bool> claimed{false};  ///< a call is about to complete it
  Pending* next = nullptr;

  memory::Buffer frame;               ///< a send's frame; alive until MPI is done with it
  std::optional<Receive> receive;     ///< set for receives
  std::optional<MPI_Status> outcome;  ///< set where a receive was over when the request was made

  // Persistent requests stay in the table until they are freed.
  bool persistent = false;
  bool active = true;  ///< started and not complete; always true where not persistent
  /// Where mpress started another operation in the persistent one's place, that request: calls
  /// that complete the program's request complete this one instead.
  MPI_Request stand_in = MPI_REQUEST_NULL;
  bool replaced() const { return stand_in != MPI_REQUEST_NULL; }
  SendArguments send;  ///< of a persistent send
  StartSend start_send = nullptr;
  MPI_Comm comm = MPI_COMM_NULL;  ///< of a persistent receive, as are source and tag
  int source = MPI_ANY_SOURCE;
  int tag = 0;
};

class RequestTable {
 public:
  RequestTable() = default;
  RequestTable(const RequestTable&) = delete;
  RequestTable& operator=(const RequestTable&) = delete;

  /// Takes ownership of `pending`, filed under `request`.
  void insert(MPI_Request request, std::unique_ptr<Pending> pending);

  /// The entry of `request`, or null. It stays in the table.
  Pending* find(MPI_Request request) { return search(request, false); }

  /// The same for a call that may complete the request: no other call finds the entry until it is
  /// released. Persistent requests keep their handles and need no claim.
  Pending* claim(MPI_Request request) { return search(request, true); }
  static void release(Pending* pending) {
    pending->claimed.store(false, std::memory_order_relaxed);
  }

  /// Takes `pending` out of the table.
  std::unique_ptr<Pending> remove(Pending* pending);

  bool empty() const { return size_.load(std::memory_order_relaxed) == 0; }

 private:
  struct alignas(64) Shard {
    std::atomic_flag locked = ATOMIC_FLAG_INIT;
    std::array<Pending*, 30> buckets{};
  };
  class Lock;
  static constexpr std::size_t shard_count = 64;

  Pending* search(MPI_Request request, bool claim);

  static std::uint64_t hash(std::uintptr_t key) { return key * 0x9E3779B97F4A7C15u; }
  Shard& shard_of(std::uintptr_t key) { return shards_[hash(key) >> 58]; }
  static Pending*& bucket_of(Shard& shard, std::uintptr_t key) {
    return shard.buckets[(hash(key) >> 32) % shard.buckets.size()];
  }

  std::array<Shard, shard_count> shards_;
  std::atomic<std::int64_t> size_{0};
};

}  // namespace mpress::engine
