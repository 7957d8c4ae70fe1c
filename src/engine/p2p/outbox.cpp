#include "engine/p2p/outbox.hpp"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "trace/timeline.hpp"

namespace mpress::engine {

void Outbox::add(Parcel parcel) {
  std::lock_guard lock(mutex_);
  held_.fetch_add(parcel.data.capacity(), std::memory_order_relaxed);
  ++sent_[static_cast<std::size_t>(parcel.peer)];
  parcels_.push_back(std::move(parcel));
  count_.store(parcels_.size(), std::memory_order_relaxed);
}

/// Looks at the oldest parcel. One that is still under way goes to the end, so that a receiver
/// who is late holds up nobody else's memory.
bool Outbox::forget_one() {
  Parcel parcel = std::move(parcels_.front());
  parcels_.pop_front();
  int sent = 0;
  MPI_Status status;
  const int code = mpi::calls().Test(&parcel.request, &sent, &status);
  if (code == MPI_SUCCESS && !sent) {
    parcels_.push_back(std::move(parcel));
    return false;
  }
  if (parcel.cancelled) {
    int was_cancelled = 0;
    mpi::calls().Test_cancelled(&status, &was_cancelled);
    if (was_cancelled) --sent_[static_cast<std::size_t>(parcel.peer)];
    cancelling_.fetch_sub(1, std::memory_order_relaxed);
  }
  if (trace::timeline.is_on()) {
    parcel.on_wire.end_ns = trace::now_ns();
    trace::timeline.note(parcel.on_wire);
  }
  held_.fetch_sub(parcel.data.capacity(), std::memory_order_relaxed);
  count_.store(parcels_.size(), std::memory_order_relaxed);
  return true;
}

bool Outbox::progress() {
  constexpr int looks = 2;
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return false;  // another thread is at it
  bool forgot = false;
  for (int under_way = 0; under_way < looks && !parcels_.empty();) {
    if (forget_one()) {
      forgot = true;
    } else {
      ++under_way;
    }
  }
  if (forgot) patience_ns_.store(longest_patience_ns, std::memory_order_relaxed);
  return forgot;
}

void Outbox::linger() {
  if (empty()) return;
  std::uint64_t since = trace::now_ns();
  const trace::Span span({.begin_ns = since, .kind = trace::Kind::linger});
  while (!empty()) {
    if (progress()) {
      since = trace::now_ns();
      continue;
    }
    const std::uint64_t patience = patience_ns_.load(std::memory_order_relaxed);
    if (trace::now_ns() - since > patience) {
      // A receiver who is not there yet costs every call less.
      patience_ns_.store(std::max(patience / 2, shortest_patience_ns), std::memory_order_relaxed);
      return;
    }
    ::sched_yield();
  }
}

void Outbox::cancel(std::uint64_t message) {
  std::lock_guard lock(mutex_);
  for (Parcel& parcel : parcels_) {
    if (parcel.message != message || parcel.cancelled) continue;
    // Where MPI cannot, the chunk is dropped by its receiver when MPI ends.
    mpi::calls().Cancel(&parcel.request);
    parcel.cancelled = true;
    cancelling_.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace mpress::engine
