#include "engine/request/request_table.hpp"

#include <utility>

#include "engine/progress/spin_lock.hpp"

namespace mpress::engine {

void RequestTable::insert(MPI_Request request, std::shared_ptr<Request> entry) {
  entry->key_ = mpi::handle_bits(request);
  Shard& shard = shard_of(entry->key_);
  const SpinLock lock(shard.locked);
  Request*& bucket = bucket_of(shard, entry->key_);
  entry->next_ = bucket;
  bucket = entry.get();
  bucket->self_ = std::move(entry);
  size_.fetch_add(1, std::memory_order_relaxed);
}

Request* RequestTable::search(MPI_Request request, bool claim) {
  if (empty() || request == MPI_REQUEST_NULL) return nullptr;
  const std::uintptr_t key = mpi::handle_bits(request);
  Shard& shard = shard_of(key);
  const SpinLock lock(shard.locked);
  Request* entry = bucket_of(shard, key);
  while (entry && (entry->key_ != key || entry->claimed_.load(std::memory_order_relaxed))) {
    entry = entry->next_;
  }
  if (entry && claim && !entry->is_persistent()) {
    entry->claimed_.store(true, std::memory_order_relaxed);
  }
  return entry;
}

std::shared_ptr<Request> RequestTable::remove(Request* entry) {
  Shard& shard = shard_of(entry->key_);
  const SpinLock lock(shard.locked);
  Request** link = &bucket_of(shard, entry->key_);
  while (*link != entry) link = &(*link)->next_;
  *link = entry->next_;
  size_.fetch_sub(1, std::memory_order_relaxed);
  return std::move(entry->self_);
}

}  // namespace mpress::engine
