// Floating-point environments in which rounds are run: how they round, whether they flush, what
// they trap. None of it may change what arrives, and no round may change any of it.
#pragma once

#include <cstdint>

#include "failure.hpp"
#include "random.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace stress {

/// While it lives, this thread has the usual one. What computes is not inlined beside it: compilers
/// move arithmetic across an instruction that sets modes.
class UsualFloats {
 public:
#if defined(__x86_64__)
  UsualFloats() : before_(_mm_getcsr()) { _mm_setcsr(0x1F80); }
  ~UsualFloats() { _mm_setcsr(before_); }

 private:
  unsigned before_;
#else
  UsualFloats() {}
#endif
  UsualFloats(const UsualFloats&) = delete;
  UsualFloats& operator=(const UsualFloats&) = delete;
};

/// While it lives, this thread has one that is drawn from `key`. What the rounds compute themselves
/// are integers; MPI may raise other flags than those of errors.
class DrawnFloats {
 public:
#if defined(__x86_64__)
  explicit DrawnFloats(std::uint64_t key) : before_(_mm_getcsr()) {
    Random random(key);
    constexpr unsigned usual = 0x1F80, traps = 0x0680, flushing = 0x8040;
    drawn_ = random.chance(50) ? usual : usual & ~traps;
    drawn_ |= static_cast<unsigned>(random.below(4)) << 13 | (random.chance(25) ? flushing : 0);
    _mm_setcsr(drawn_);
  }
  ~DrawnFloats() { _mm_setcsr(before_); }

  void check() const {
    constexpr unsigned watched = 0xFFCD;
    expect_equal(_mm_getcsr() & watched, drawn_, "the floating-point environment after a round");
  }

 private:
  unsigned before_, drawn_;
#else
  explicit DrawnFloats(std::uint64_t) {}
  void check() const {}
#endif
  DrawnFloats(const DrawnFloats&) = delete;
  DrawnFloats& operator=(const DrawnFloats&) = delete;
};

}  // namespace stress
