// Waiting by looking again: the one way in which mpress does so.
#pragma once

#include <sched.h>

#include <atomic>

namespace mpress::engine {

/// Between two looks at something that another processor or device will change. Most waits last a
/// few microseconds, so the first looks follow each other at once; then others may have the
/// processor in between. Where a host has more ranks than processors they have it at once: who is
/// waited for may need this very one, and would else get it a time slice later.
class Backoff {
 public:
  Backoff() : Backoff(looks_at_once.load(std::memory_order_relaxed)) {}
  /// `looks`: before the processor is given away.
  explicit Backoff(int looks) : looks_left_(looks) {}

  static void set_crowded(bool is_crowded) {
    looks_at_once.store(is_crowded ? 0 : usual_looks, std::memory_order_relaxed);
  }

  void pause() {
    if (looks_left_ > 0) {
      --looks_left_;
    } else {
      ::sched_yield();
    }
  }

 private:
  static constexpr int usual_looks = 20000;
  static inline std::atomic<int> looks_at_once{usual_looks};

  int looks_left_;
};

}  // namespace mpress::engine
