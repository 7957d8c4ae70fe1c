#pragma once

#include <sched.h>
#include <time.h>

#include <atomic>
#include <chrono>

namespace mpress::engine {

/// Between two looks at something that another processor or device will change. Most waits last a
/// few microseconds, so looks follow each other at once in the first `spinning`; then others may
/// have the processor in between: who is waited for may need this very one, and would else get it
/// a time slice later. A look may be a call of MPI's of some microseconds, so they are not counted.
/// Where a host has more ranks than processors, they have it at once.
class Backoff {
 public:
  Backoff() : Backoff(!is_oversubscribed()) {}
  /// `spins`: at first.
  explicit Backoff(bool spins) : spins_(spins) {}

  /// Has this host more ranks than processors? It is the same for all ranks of a process.
  static void set_oversubscribed(bool is) { oversubscribed.store(is, std::memory_order_relaxed); }
  static bool is_oversubscribed() { return oversubscribed.load(std::memory_order_relaxed); }

  void pause() {
    if (looks_left_ > 0) {
      --looks_left_;
    } else if (spins_ && !is_over()) {
      looks_left_ = looks_a_clock;
    } else {
      spins_ = false;
      give_way();
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  static constexpr int looks_a_clock = 8;  ///< which takes less than that many short looks
  static constexpr std::chrono::microseconds spinning{100};
  static constexpr std::chrono::milliseconds slice{1};  ///< of time: less than any scheduler's
  static constexpr std::chrono::milliseconds sleeping{200};
  static inline std::atomic<bool> oversubscribed{false};
  static inline std::atomic<Clock::rep> sleeping_until{0};

  /// The time begins with the first look that was in vain.
  bool is_over() {
    const Clock::time_point now = Clock::now();
    if (end_ == Clock::time_point{}) end_ = now + spinning;
    return now >= end_;
  }

  /// Linux charges who yields for the rest of its time slice: beside one that never does, as who
  /// polls within MPI, its turn comes several slices later. Who sleeps keeps its turn, and is back
  /// in 50 us. So where a yield took a slice, threads sleep for a while instead.
  static void give_way() {
    const Clock::time_point begin = Clock::now();
    if (begin.time_since_epoch().count() < sleeping_until.load(std::memory_order_relaxed)) {
      const timespec shortest{0, 1};
      ::nanosleep(&shortest, nullptr);
      return;
    }
    ::sched_yield();
    const Clock::time_point end = Clock::now();
    if (end - begin < slice) return;
    sleeping_until.store((end + sleeping).time_since_epoch().count(), std::memory_order_relaxed);
  }

  bool spins_;
  int looks_left_ = 0;
  Clock::time_point end_{};
};

}  // namespace mpress::engine
