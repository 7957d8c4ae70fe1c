#include "codec/float_environment.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace mpress {

// No code of mpress uses the x87 unit, whose modes and flags are apart.
#if defined(__x86_64__)

namespace {

constexpr std::uint32_t flags = 0x3F;
constexpr std::uint32_t masks = 0x1F80;
constexpr std::uint32_t modes = 0xE040;  ///< FTZ, rounding, DAZ

}  // namespace

FloatModes FloatModes::of_thread() {
  FloatModes found;
  found.bits_ = _mm_getcsr() & modes;
  return found;
}

/// Writes the register, which takes longer than to read it, only where it differs.
class FloatScope {
 public:
  explicit FloatScope(FloatModes modes) : before_(_mm_getcsr()) {
    const std::uint32_t wanted = masks | modes.bits_;
    if ((before_ & ~flags) != wanted) _mm_setcsr(wanted | (before_ & flags));
  }
  FloatScope(const FloatScope&) = delete;
  FloatScope& operator=(const FloatScope&) = delete;
  ~FloatScope() {
    if (_mm_getcsr() != before_) _mm_setcsr(before_);
  }

 private:
  const std::uint32_t before_;
};

#else

FloatModes FloatModes::of_thread() {
  FloatModes found;
  std::fegetenv(&found.environment_.emplace());
  return found;
}

class FloatScope {
 public:
  explicit FloatScope(FloatModes modes) {
    std::fegetenv(&before_);
    std::fenv_t unused;
    std::fesetenv(modes.environment_ ? &*modes.environment_ : FE_DFL_ENV);
    std::feholdexcept(&unused);  // masks traps, and keeps modes
  }
  FloatScope(const FloatScope&) = delete;
  FloatScope& operator=(const FloatScope&) = delete;
  ~FloatScope() { std::fesetenv(&before_); }

 private:
  std::fenv_t before_;
};

#endif

[[gnu::noinline]] void float_environment::call(FloatModes modes, void (*function)(void*),
                                               void* argument) {
  const FloatScope scope(modes);
  function(argument);
}

}  // namespace mpress
