// Waiting by looking again: the one way in which mpress does so.
#pragma once

#include <sched.h>

namespace mpress::engine {

/// Between two looks at something that another processor or device will change. Most waits last a
/// few microseconds, so the first looks follow each other at once; then others may have the
/// processor in between.
class Backoff {
 public:
  /// `looks_at_once`: before the processor is given away.
  explicit Backoff(int looks_at_once = 20000) : looks_left_(looks_at_once) {}

  void pause() {
    if (looks_left_ > 0) {
      --looks_left_;
    } else {
      ::sched_yield();
    }
  }

 private:
  int looks_left_;
};

}  // namespace mpress::engine
