// How kernels round elements to quanta of 32 bits, and which of those need no look at the error.
// The same arithmetic for host and device, so that tests compare it with the codec's where there is
// no device.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "codec/szp/format.hpp"

namespace mpress::codec::szp {

/// `magic` has the unit of Traits' one, `zero` is what the low bits of the sum hold for a quantum
/// of 0, `reach` how far quanta need no look at the error.
template <class T>
struct Rounding;

template <>
struct Rounding<float> {
  static constexpr float magic = Traits<float>::magic;
  static constexpr auto zero = std::bit_cast<std::int32_t>(magic);
  static constexpr std::int32_t reach = 2700;
};

template <>
struct Rounding<double> {
  static constexpr double magic = Traits<double>::magic + narrow_limit;
  static constexpr auto zero = static_cast<std::int32_t>(narrow_limit);
  static constexpr std::int32_t reach = zero - 1;
};

// The error is at most step * (1/2 + (1.5 * |q| + 1) * epsilon), where q * step is finite. The
// shrunk step keeps that below the limit up to `reach`, with room for the rounding of both.
template <class T>
inline constexpr double worst_loss =
    (3.0 * Rounding<T>::reach + 16) * std::numeric_limits<T>::epsilon();
static_assert(worst_loss<float> < 1 - step_shrink && worst_loss<double> < 1 - step_shrink);

/// Of longer steps, quanta within `reach` may decode to infinities.
template <class T>
inline constexpr T longest_step = std::numeric_limits<T>::max() / (Rounding<T>::reach + 1);

/// A quantum, above Rounding's zero, of an element's multiple of the step and Rounding's magic. An
/// f32 element that has none, NaNs of either sign among them, shows as one beyond max_quantum; an
/// f64 one leaves bits in `strange`.
MPRESS_SZP_INLINE std::int32_t rounded(float shifted, std::uint32_t&) {
  return __builtin_bit_cast(std::int32_t, shifted);
}
MPRESS_SZP_INLINE std::int32_t rounded(double shifted, std::uint32_t& strange) {
  constexpr auto magic = __builtin_bit_cast(std::uint64_t, Rounding<double>::magic);
  const auto bits = __builtin_bit_cast(std::uint64_t, shifted);
  strange |= static_cast<std::uint32_t>((bits ^ magic) >> 32);
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(bits));
}

}  // namespace mpress::codec::szp
