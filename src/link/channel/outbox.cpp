#include "link/channel/outbox.hpp"

#include <sched.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "trace/timeline.hpp"

namespace mpress::link {

void Outbox::add(Chunk chunk) {
  std::lock_guard lock(mutex_);
  ++sent_[static_cast<std::size_t>(chunk.peer)];
  count_.fetch_add(1, std::memory_order_relaxed);
  chunks_.push_back(std::move(chunk));
}

std::size_t Outbox::under_way(std::uint64_t operation) const {
  if (empty()) return 0;
  std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(std::ranges::count(chunks_, operation, &Chunk::operation));
}

/// Looks at the oldest chunk. One that is still under way goes to the end, so that a receiver
/// who is late holds up nobody else's memory.
bool Outbox::forget_one() {
  std::unique_lock lock(mutex_);
  if (chunks_.empty()) return false;
  Chunk chunk = std::move(chunks_.front());
  chunks_.pop_front();
  lock.unlock();
  const bool is_over = channel_->poll(chunk.pending) != gpu::State::pending;
  lock.lock();
  if (!is_over) {
    chunks_.push_back(std::move(chunk));
    return false;
  }
  count_.fetch_sub(1, std::memory_order_relaxed);
  lock.unlock();
  std::size_t watched = chunk.is_timed ? watched_.load(std::memory_order_relaxed) : 0;
  while (watched > 0 &&
         !watched_.compare_exchange_weak(watched, watched - 1, std::memory_order_relaxed)) {
  }
  if (trace::timeline.is_on() && chunk.on_wire.begin_ns > 0) {
    chunk.on_wire.end_ns = trace::now_ns();
    trace::timeline.note(chunk.on_wire);
  }
  return true;
}

void Outbox::watch(std::size_t chunks) {
  longest_away_ns_.store(0, std::memory_order_relaxed);
  looked_ns_.store(trace::now_ns(), std::memory_order_relaxed);
  watched_.store(chunks, std::memory_order_relaxed);
}

void Outbox::be_patient(std::uint64_t ns) {
  longest_backoff_ns_ = std::clamp(ns, longest_backoff_ns_, most_patient_ns);
  backoff_ns_.store(longest_backoff_ns_, std::memory_order_relaxed);
}

void Outbox::look() {
  const std::uint64_t now = trace::now_ns();
  const std::uint64_t away = now - looked_ns_.exchange(now, std::memory_order_relaxed);
  if (away > longest_away_ns()) longest_away_ns_.store(away, std::memory_order_relaxed);
}

bool Outbox::progress() {
  if (watched_.load(std::memory_order_relaxed) > 0) look();
  constexpr int looks = 2;
  bool forgot = false;
  for (int under_way = 0; under_way < looks && !empty();) {
    if (forget_one()) {
      forgot = true;
    } else {
      ++under_way;
    }
  }
  if (forgot) backoff_ns_.store(longest_backoff_ns_, std::memory_order_relaxed);
  return forgot;
}

void Outbox::flush() {
  excuse();
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

/// A chunk that another thread looks at just now stays under way.
void Outbox::cancel(std::uint64_t operation, int tag) {
  std::lock_guard lock(mutex_);
  const auto found = std::stable_partition(
      chunks_.begin(), chunks_.end(), [&](const Chunk& one) { return one.operation != operation; });
  count_.fetch_sub(static_cast<std::size_t>(chunks_.end() - found), std::memory_order_relaxed);
  std::move(found, chunks_.end(), std::back_inserter(cancelled_));
  chunks_.erase(found, chunks_.end());
  cancelled_tags_.insert(tag);
  has_cancelled_.store(true, std::memory_order_relaxed);
}

bool Outbox::is_cancelled(int tag) const {
  if (!has_cancelled_.load(std::memory_order_relaxed)) return false;
  std::lock_guard lock(mutex_);
  return cancelled_tags_.contains(tag);
}

void Outbox::take_back() {
  std::lock_guard lock(mutex_);
  count_.fetch_add(cancelled_.size(), std::memory_order_relaxed);
  std::move(cancelled_.begin(), cancelled_.end(), std::back_inserter(chunks_));
  cancelled_.clear();
}

}  // namespace mpress::link
