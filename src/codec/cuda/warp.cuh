// Reductions over the 32 lanes of a warp, all of which call: of 32 bits one instruction from sm_80
// on, else five exchanges. Every lane gets the result.
#pragma once

#include <cstdint>

namespace mpress::codec::cuda {

template <class Int, class Op>
__device__ inline Int warp_exchange(Int value, Op op) {
#pragma unroll
  for (unsigned step = 16; step > 0; step /= 2) {
    value = op(value, __shfl_xor_sync(~0u, value, step));
  }
  return value;
}

/// Int: 32 bits, signed or not.
template <class Int>
__device__ inline Int warp_sum(Int value) {
#if __CUDA_ARCH__ >= 800
  return __reduce_add_sync(~0u, value);
#else
  return warp_exchange(value, [](Int a, Int b) { return a + b; });
#endif
}

template <class Int>
__device__ inline Int warp_min(Int value) {
#if __CUDA_ARCH__ >= 800
  if constexpr (sizeof(Int) == 4) return __reduce_min_sync(~0u, value);
#endif
  return warp_exchange(value, [](Int a, Int b) { return a < b ? a : b; });
}

template <class Int>
__device__ inline Int warp_max(Int value) {
#if __CUDA_ARCH__ >= 800
  if constexpr (sizeof(Int) == 4) return __reduce_max_sync(~0u, value);
#endif
  return warp_exchange(value, [](Int a, Int b) { return a > b ? a : b; });
}

__device__ inline std::uint32_t warp_or(std::uint32_t value) {
#if __CUDA_ARCH__ >= 800
  return __reduce_or_sync(~0u, value);
#else
  return warp_exchange(value, [](std::uint32_t a, std::uint32_t b) { return a | b; });
#endif
}

}  // namespace mpress::codec::cuda
