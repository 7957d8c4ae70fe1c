#include "link/mpi/outbox.hpp"

#include <sched.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "trace/timeline.hpp"

namespace mpress::link {

void Outbox::add(Chunk chunk) {
  std::lock_guard lock(mutex_);
  held_.fetch_add(chunk.data.capacity(), std::memory_order_relaxed);
  ++sent_[static_cast<std::size_t>(chunk.peer)];
  count_.fetch_add(1, std::memory_order_relaxed);
  chunks_.push_back(std::move(chunk));
}

/// Looks at the oldest chunk. One that is still under way goes to the end, so that a receiver
/// who is late holds up nobody else's memory.
bool Outbox::forget_one() {
  std::unique_lock lock(mutex_);
  if (chunks_.empty()) return false;
  Chunk chunk = std::move(chunks_.front());
  chunks_.pop_front();
  lock.unlock();
  int is_sent = 0;
  int was_cancelled = 0;
  MPI_Status status;
  const int code = mpi::calls().Test(&chunk.request, &is_sent, &status);
  const bool is_over = code != MPI_SUCCESS || is_sent;
  if (is_over && chunk.is_cancelled) mpi::calls().Test_cancelled(&status, &was_cancelled);
  lock.lock();
  if (!is_over) {
    chunks_.push_back(std::move(chunk));
    return false;
  }
  if (chunk.is_cancelled) {
    if (was_cancelled) --sent_[static_cast<std::size_t>(chunk.peer)];
    cancelling_.fetch_sub(1, std::memory_order_relaxed);
  }
  held_.fetch_sub(chunk.data.capacity(), std::memory_order_relaxed);
  count_.fetch_sub(1, std::memory_order_relaxed);
  lock.unlock();
  if (trace::timeline.is_on()) {
    chunk.on_wire.end_ns = trace::now_ns();
    trace::timeline.note(chunk.on_wire);
  }
  return true;
}

bool Outbox::progress() {
  constexpr int looks = 2;
  bool forgot = false;
  for (int under_way = 0; under_way < looks && !empty();) {
    if (forget_one()) {
      forgot = true;
    } else {
      ++under_way;
    }
  }
  if (forgot) backoff_ns_.store(longest_backoff_ns, std::memory_order_relaxed);
  return forgot;
}

void Outbox::flush() {
  if (empty()) return;
  std::uint64_t since = trace::now_ns();
  const trace::Span span({.begin_ns = since, .kind = trace::Kind::linger});
  while (!empty()) {
    if (progress()) {
      since = trace::now_ns();
      continue;
    }
    const std::uint64_t backoff = backoff_ns_.load(std::memory_order_relaxed);
    if (trace::now_ns() - since > backoff) {
      // A receiver who is not there yet costs every call less.
      backoff_ns_.store(std::max(backoff / 2, shortest_backoff_ns), std::memory_order_relaxed);
      return;
    }
    ::sched_yield();
  }
}

/// A chunk that another thread looks at just now is left alone, as one that MPI cannot cancel is:
/// its receiver drops it when MPI ends.
void Outbox::cancel(std::uint64_t operation) {
  std::vector<Chunk> found;
  {
    std::lock_guard lock(mutex_);
    const auto asked = std::stable_partition(chunks_.begin(), chunks_.end(), [&](const Chunk& one) {
      return one.operation != operation || one.is_cancelled;
    });
    std::move(asked, chunks_.end(), std::back_inserter(found));
    chunks_.erase(asked, chunks_.end());
  }
  for (Chunk& chunk : found) {
    mpi::calls().Cancel(&chunk.request);
    chunk.is_cancelled = true;
    cancelling_.fetch_add(1, std::memory_order_relaxed);
  }
  std::lock_guard lock(mutex_);
  std::move(found.begin(), found.end(), std::back_inserter(chunks_));
}

}  // namespace mpress::link
