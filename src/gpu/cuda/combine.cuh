// What kernels that combine arrays of elements do with some lanes of each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/combine.hpp"

namespace mpress::gpu {

/// `lanes` elements that are loaded and stored at once.
template <class T, unsigned lanes>
struct alignas(sizeof(T) * lanes) Pack {
  T lane[lanes];
};

template <codec::Combine how, class Sum, class T, unsigned lanes>
__device__ void join(Sum (&sums)[lanes], const Pack<T, lanes>& pack) {
#pragma unroll
  for (unsigned i = 0; i < lanes; ++i) {
    sums[i] = codec::combine<how>(sums[i], static_cast<Sum>(pack.lane[i]));
  }
}

/// What comes of `number` packs, one or more, in their order; load(i) gets one. Four are on their
/// way at once.
template <codec::Combine how, class Sum, class T, unsigned lanes, class Load>
__device__ __forceinline__ Pack<T, lanes> combined(unsigned number, Load load) {
  using Packed = Pack<T, lanes>;
  constexpr unsigned ahead = 4;
  Sum sums[lanes];
  const Packed first = load(0);
#pragma unroll
  for (unsigned k = 0; k < lanes; ++k) sums[k] = static_cast<Sum>(first.lane[k]);
  unsigned input = 1;
  for (; input + ahead <= number; input += ahead) {
    Packed packs_ahead[ahead];
#pragma unroll
    for (unsigned k = 0; k < ahead; ++k) packs_ahead[k] = load(input + k);
#pragma unroll
    for (unsigned k = 0; k < ahead; ++k) join<how>(sums, packs_ahead[k]);
  }
#pragma unroll 3
  for (; input < number; ++input) join<how>(sums, load(input));
  Packed result;
#pragma unroll
  for (unsigned k = 0; k < lanes; ++k) result.lane[k] = static_cast<T>(sums[k]);
  return result;
}

}  // namespace mpress::gpu
