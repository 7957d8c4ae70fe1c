// Floating-point environments of programs, and what a call makes of them.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace floats {

/// A control register; elsewhere than on x86-64 a rounding direction.
using State = unsigned;

#if defined(__x86_64__)
inline State get() { return _mm_getcsr(); }
inline void set(State state) { _mm_setcsr(state); }
inline constexpr State usual = 0x1F80;
inline constexpr State flushing = 0x8040;

/// Rounding in all directions, with and without flushing; no flags, nothing trapped.
inline std::vector<State> modes() {
  std::vector<State> all;
  for (State direction = 0; direction < 4; ++direction) {
    all.push_back(usual | direction << 13);
    all.push_back(usual | direction << 13 | flushing);
  }
  return all;
}

/// With flags already raised, and with traps: each alone, and all.
inline std::vector<State> strange() {
  std::vector<State> all = modes();
  all.push_back(usual | 0x3F);
  all.push_back(usual | 0x15 | 2 << 13);
  for (int trap = 0; trap < 6; ++trap) all.push_back(usual & ~(1u << (7 + trap)));
  all.push_back(2 << 13 | flushing);
  return all;
}
#else
inline State get() { return static_cast<State>(std::fegetround()); }
inline void set(State state) { std::fesetround(static_cast<int>(state)); }
inline constexpr State usual = FE_TONEAREST;
inline std::vector<State> modes() { return {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}; }
inline std::vector<State> strange() { return modes(); }
#endif

/// What a call returned and left behind that was made in `state`.
template <class Result>
[[gnu::noinline]] std::pair<Result, State> in(State state, const std::function<Result()>& act) {
  const State before = get();
  set(state);
  Result result = act();
  const State after = get();
  set(before);
  return {std::move(result), after};
}

/// Smooth, but for what masked fields hold: fill values, infinities, quiet and signalling NaNs,
/// denormals, what is near overflow, zeros of both signs. Different for each `owner`.
template <class T>
std::vector<T> odd_field(std::size_t count, int owner) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr int mantissa = std::numeric_limits<T>::digits - 1;
  constexpr Bits exponent = static_cast<Bits>((sizeof(T) == 4 ? 0xFF : 0x7FF)) << mantissa;
  constexpr Bits sign = static_cast<Bits>(1) << (8 * sizeof(T) - 1);
  constexpr Bits quiet = static_cast<Bits>(1) << (mantissa - 1);
  const Bits odd[] = {exponent | quiet | 0x123,
                      exponent | 1,
                      exponent,
                      exponent | sign,
                      exponent - 1,
                      sign,
                      1,
                      sign | quiet | 3,
                      (exponent - 1) | sign,
                      quiet - 1,
                      exponent / 2,
                      0};
  std::vector<T> x(count);
  for (std::size_t i = 0; i < count; ++i) {
    x[i] = static_cast<T>(0.001) * static_cast<T>(i % 4099) + static_cast<T>(owner) / 3;
    const std::size_t place = (i + static_cast<std::size_t>(owner) * 5) % 37;
    if (i % 3000 < 1000 && place < std::size(odd)) std::memcpy(&x[i], &odd[place], sizeof(T));
  }
  return x;
}

}  // namespace floats
