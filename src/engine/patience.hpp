// Waiting for a device by looking at memory.
#pragma once

#include <sched.h>

namespace mpress::engine {

/// Between two looks. It is a few microseconds mostly: others may have the processor only after
/// that.
class Patience {
 public:
  void pause() {
    constexpr int patient_looks = 20000;
    if (++looks_ > patient_looks) ::sched_yield();
  }

 private:
  int looks_ = 0;
};

}  // namespace mpress::engine
