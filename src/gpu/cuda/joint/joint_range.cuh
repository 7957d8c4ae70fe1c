// The range of what a member brings to a joint sum, found while its rows are in registers.
#pragma once

#include <cstddef>
#include <limits>

#include "codec/report.hpp"
#include "codec/szp/range_keys.cuh"
#include "gpu/cuda/joint/joint_rows.cuh"
#include "gpu/cuda/tell.hpp"

namespace mpress::gpu {

/// Of the rows that a warp has read, in shared memory: keys as in RangeKeys, 0 at first. Its first
/// lane alone uses them, before all warps are done.
template <class T>
struct WarpRange {
  using Bits = typename codec::szp::Traits<T>::Bits;

  Bits least;
  Bits greatest;

  /// By all lanes: a row's first `count` elements.
  __device__ void take(const T (&x)[per_lane<T>], std::size_t count) {
    Bits low = 0, high = 0;
    const auto take_one = [&](T value) {
      const Bits key = codec::szp::cuda::key_of<T>(__builtin_bit_cast(Bits, value));
      high = max(high, key);
      low = max(low, static_cast<Bits>(~key));
    };
    // Most are finite: three instructions each, and a sum that is 0 tells (as in find_ranges()).
    T lo = x[0], hi = x[0], zero = 0;
#pragma unroll
    for (unsigned v = 0; v < per_lane<T>; ++v) {
      lo = min(lo, x[v]);
      hi = max(hi, x[v]);
      zero = fma(x[v], T(0), zero);
    }
    if (zero == 0 && count >= joint_sum::row_elements(sizeof(T))) {
      take_one(lo);
      take_one(hi);
    } else {
#pragma unroll
      for (unsigned v = 0; v < per_lane<T>; ++v) {
        constexpr T most = std::numeric_limits<T>::max();
        if (place_of<T>(v) < count && x[v] >= -most && x[v] <= most) take_one(x[v]);
      }
    }
    low = codec::cuda::warp_max(low);
    high = codec::cuda::warp_max(high);
    if (threadIdx.x % 32 != 0) return;
    least = max(least, low);
    greatest = max(greatest, high);
  }
};

/// By all threads of a block, once its warps are done.
template <class T>
__device__ void join_ranges(const WarpRange<T> (&ranges)[joint_sum::rows],
                            Tell::Counters& counters) {
  __syncthreads();
  if (threadIdx.x != 0) return;
  WarpRange<T> all = ranges[0];
  for (const WarpRange<T>& one : ranges) {
    all.least = max(all.least, one.least);
    all.greatest = max(all.greatest, one.greatest);
  }
  atomicMax(&counters.range.least, static_cast<unsigned long long>(all.least));
  atomicMax(&counters.range.greatest, static_cast<unsigned long long>(all.greatest));
}

/// By the last thread of a kernel, to the host.
template <class T>
__device__ void tell_range(Tell::Counters& counters, Extent& extent) {
  const unsigned long long least = atomicExch(&counters.range.least, 0);
  const unsigned long long greatest = atomicExch(&counters.range.greatest, 0);
  if (greatest == 0) return;
  using codec::szp::cuda::value_of;
  volatile Extent& to = extent;
  to.min = value_of<T>(~least);
  to.max = value_of<T>(greatest);
  to.flags = Extent::finite;
}

}  // namespace mpress::gpu
