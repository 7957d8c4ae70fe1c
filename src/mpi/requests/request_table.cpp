#include "mpi/requests/request_table.hpp"

#include <utility>

#include "core/spin_lock.hpp"

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

/// Visits those of `request`, the youngest first, until one is taken.
template <typename Take>
Request* RequestTable::search(MPI_Request request, Take take) {
  if (empty() || request == MPI_REQUEST_NULL) return nullptr;
  const std::uintptr_t key = mpi::handle_bits(request);
  Shard& shard = shard_of(key);
  const SpinLock lock(shard.locked);
  Request* entry = bucket_of(shard, key);
  while (entry && (entry->key_ != key || !take(*entry))) entry = entry->next_;
  return entry;
}

Request* RequestTable::find(MPI_Request request) {
  return search(request, [](const Request& entry) {
    return entry.is_persistent() || !entry.claimed_.load(std::memory_order_relaxed);
  });
}

Request* RequestTable::find_claimed_too(MPI_Request request) {
  Request* claimed = nullptr;
  Request* const found = search(request, [&](Request& entry) {
    const bool is_free = !entry.claimed_.load(std::memory_order_relaxed);
    if (!is_free && !claimed) claimed = &entry;
    return is_free;
  });
  return found ? found : claimed;
}

Request* RequestTable::claim(MPI_Request request) {
  return search(request, [](Request& entry) {
    return !entry.claimed_.exchange(true) || entry.is_persistent();
  });
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
