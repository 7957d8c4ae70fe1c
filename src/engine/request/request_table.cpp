#include "engine/request/request_table.hpp"

#include <utility>

namespace mpress::engine {

class RequestTable::Lock {
 public:
  explicit Lock(Shard& shard) : shard_(shard) {
    while (shard_.locked.test_and_set(std::memory_order_acquire)) {
      while (shard_.locked.test(std::memory_order_relaxed)) {
      }
    }
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() { shard_.locked.clear(std::memory_order_release); }

 private:
  Shard& shard_;
};

void RequestTable::insert(MPI_Request request, std::unique_ptr<Pending> pending) {
  pending->key = mpi::handle_bits(request);
  Shard& shard = shard_of(pending->key);
  Lock lock(shard);
  Pending*& bucket = bucket_of(shard, pending->key);
  pending->next = bucket;
  bucket = pending.release();
  size_.fetch_add(1, std::memory_order_relaxed);
}

Pending* RequestTable::search(MPI_Request request, bool claim) {
  if (empty() || request == MPI_REQUEST_NULL) return nullptr;
  const std::uintptr_t key = mpi::handle_bits(request);
  Shard& shard = shard_of(key);
  Lock lock(shard);
  Pending* pending = bucket_of(shard, key);
  while (pending && (pending->key != key || pending->claimed.load(std::memory_order_relaxed))) {
    pending = pending->next;
  }
  if (pending && claim && !pending->persistent) {
    pending->claimed.store(true, std::memory_order_relaxed);
  }
  return pending;
}

std::unique_ptr<Pending> RequestTable::remove(Pending* pending) {
  Shard& shard = shard_of(pending->key);
  Lock lock(shard);
  Pending** link = &bucket_of(shard, pending->key);
  while (*link != pending) link = &(*link)->next;
  *link = pending->next;
  size_.fetch_sub(1, std::memory_order_relaxed);
  return std::unique_ptr<Pending>(pending);
}

}  // namespace mpress::engine
