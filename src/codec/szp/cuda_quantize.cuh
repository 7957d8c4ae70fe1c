// How kernels round elements, which lie in rows of a block each, to quanta.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "codec/szp/cuda_unit.cuh"

namespace mpress::codec::szp::cuda {

template <class T>
__device__ const T* row_of(const std::uint32_t* rows, unsigned block) {
  return reinterpret_cast<const T*>(rows + block * Shape<T>::row);
}

/// How the encoder rounds to quanta of 32 bits: `magic` has the unit of Traits' one, `zero` is what
/// the low bits of the sum hold for a quantum of 0.
template <class T>
struct Rounding;

template <>
struct Rounding<float> {
  static constexpr float magic = Traits<float>::magic;
  static constexpr auto zero = std::bit_cast<std::int32_t>(magic);
  static constexpr std::int32_t reach = 2700;  ///< of quanta that need no look at the error
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

/// A quantum, above Rounding's zero, of an element's multiple of the step and Rounding's magic. An f32
/// element that has none, NaNs of either sign among them, shows as one beyond max_quantum; an f64 one
/// leaves bits in `strange`.
__device__ __forceinline__ std::int32_t rounded(float shifted, std::uint32_t&) {
  return __float_as_int(shifted);
}
__device__ __forceinline__ std::int32_t rounded(double shifted, std::uint32_t& strange) {
  strange |= __double2hiint(shifted) ^
             (std::bit_cast<std::uint64_t>(Rounding<double>::magic) >> 32);
  return __double2loint(shifted);
}

template <class T>
__device__ __forceinline__ std::int32_t quantize_fast(const Quantizer<T>& z, T x,
                                                      std::uint32_t& strange) {
  return rounded(x * z.inverse + Rounding<T>::magic, strange);
}

}  // namespace mpress::codec::szp::cuda
