// The range of each segment's finite elements, for relative bounds; the device's codec/range.hpp.
#pragma once

#include "codec/cuda/launch.cuh"
#include "codec/szp/cuda_unit.cuh"
#include "codec/szp/range_keys.cuh"

namespace mpress::codec::szp::cuda {

/// With them, whether there is any element that is not finite.
struct ExtentKeys : RangeKeys {
  unsigned long long nonfinite;
};

/// As relative_grid().
template <class T>
__device__ Grid grid_within(double share, const RangeKeys& keys) {
  if (keys.greatest == 0) return relative_grid<T>(share, 0, 0);
  const auto least = static_cast<typename Traits<T>::Bits>(~keys.least);
  return relative_grid<T>(share, value_of<T>(least), value_of<T>(keys.greatest));
}

inline constexpr unsigned range_threads = 256;

/// Thread blocks take equal shares of the `units` units that all segments have. `common`: the first
/// of `ranges` is that of all segments. `extent`: there is one, of ExtentKeys.
template <class T, bool extent, unsigned capacity>
__global__ void __launch_bounds__(range_threads)
    find_ranges(const __grid_constant__ Batch<capacity> batch, RangeKeys* ranges,
                std::uint64_t units, bool common) {
  codec::cuda::let_next_begin();
  using Bits = typename Traits<T>::Bits;
  constexpr Bits exponent = __builtin_bit_cast(Bits, std::numeric_limits<T>::infinity());
  std::uint64_t begin = units * blockIdx.x / gridDim.x;
  std::uint64_t end = units * (blockIdx.x + 1) / gridDim.x;
  for (std::uint32_t number = 0; begin < end; ++number) {
    const Segment& segment = batch.segments[number];
    const std::uint64_t here = unit_count(Traits<T>::type, segment.count);
    const std::uint64_t first_element = begin * Shape<T>::elements;
    const std::uint64_t last_element =
        min(min(end, here) * Shape<T>::elements, std::uint64_t{segment.count});
    const bool is_elsewhere = begin >= here;
    begin -= min(begin, here);
    end -= min(end, here);
    if (is_elsewhere) continue;
    const std::uint64_t count = last_element - first_element;
    const auto* in = reinterpret_cast<const Bits*>(segment.in) + first_element;
    Bits least = 0;
    Bits greatest = 0;
    bool nonfinite = false;
    const auto take = [&](Bits bits) {
      if ((bits & exponent) == exponent) {
        if constexpr (extent) nonfinite = true;
        return;
      }
      const Bits key = key_of<T>(bits);
      greatest = max(greatest, key);
      least = max(least, static_cast<Bits>(~key));
    };
    std::uint64_t done = 0;
    if (reinterpret_cast<std::uintptr_t>(in) % 16 == 0) {
      constexpr unsigned each = 16 / sizeof(T);
      const std::uint64_t chunks = count / each;
      const auto for_each = [&](const auto& act) {
#pragma unroll 4
        for (std::uint64_t i = threadIdx.x; i < chunks; i += range_threads) {
          alignas(16) Bits x[each];
          *reinterpret_cast<uint4*>(x) = reinterpret_cast<const uint4*>(in)[i];
#pragma unroll
          for (unsigned k = 0; k < each; ++k) act(x[k]);
        }
      };
      // Most are finite: three instructions without a branch, so that loads run ahead.
      constexpr T infinity = std::numeric_limits<T>::infinity();
      T lo = infinity, hi = -infinity, zero = 0;
      for_each([&](Bits bits) {
        const T x = __builtin_bit_cast(T, bits);
        lo = min(lo, x);
        hi = max(hi, x);
        zero = fma(x, T(0), zero);
      });
      if (!(zero == 0)) {  // one was not
        for_each(take);
      } else if (lo <= hi) {
        take(__builtin_bit_cast(Bits, lo));
        take(__builtin_bit_cast(Bits, hi));
      }
      done = chunks * each;
    }
#pragma unroll 4
    for (std::uint64_t i = done + threadIdx.x; i < count; i += range_threads) take(in[i]);
    for (unsigned step = 16; step > 0; step /= 2) {
      least = max(least, __shfl_xor_sync(~0u, least, step));
      greatest = max(greatest, __shfl_xor_sync(~0u, greatest, step));
    }
    __shared__ Bits keys[range_threads / 32][2];
    if constexpr (extent) nonfinite = __syncthreads_or(nonfinite) != 0;
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
      keys[threadIdx.x / 32][0] = least;
      keys[threadIdx.x / 32][1] = greatest;
    }
    __syncthreads();
    if (threadIdx.x != 0) continue;
    if constexpr (extent) {
      if (nonfinite) atomicOr(&static_cast<ExtentKeys*>(ranges)->nonfinite, 1ull);
    }
    for (unsigned w = 1; w < range_threads / 32; ++w) {
      least = max(least, keys[w][0]);
      greatest = max(greatest, keys[w][1]);
    }
    if (greatest == 0) continue;
    RangeKeys& range = ranges[common ? 0 : number];
    atomicMax(&range.least, least);
    atomicMax(&range.greatest, greatest);
  }
}

/// For the next kernel of the stream, which may begin early. False where there are no elements, and
/// nothing was launched.
template <class T, bool extent = false, unsigned capacity>
bool launch_find_ranges(const Batch<capacity>& batch, RangeKeys* ranges, bool common,
                        cudaStream_t stream) {
  std::uint64_t units = 0;
  for (std::uint32_t i = 0; i < batch.count; ++i) {
    units += unit_count(Traits<T>::type, batch.segments[i].count);
  }
  if (units == 0) return false;
  const std::uint64_t most = std::uint64_t{codec::cuda::multiprocessors()} * 8;
  const auto blocks = static_cast<unsigned>(std::min(units, most));
  codec::cuda::Launch launch(blocks, range_threads, stream);
  launch.prefer_shared_memory();
  launch(find_ranges<T, extent, capacity>, batch, ranges, units, common);
  return true;
}

/// The range of all of them together, for the next kernel of the stream, which may begin early.
template <class T>
__global__ void join_extents(const mpress::Extent* extents, std::uint32_t count, RangeKeys* range) {
  codec::cuda::let_next_begin();
  RangeKeys keys = {};
  for (std::uint32_t i = 0; i < count; ++i) {
    const volatile mpress::Extent& one = extents[i];  // which others may just have written
    if ((one.flags & mpress::Extent::finite) == 0) continue;
    using Bits = typename Traits<T>::Bits;
    const Bits least = key_of<T>(__builtin_bit_cast(Bits, static_cast<T>(one.min)));
    const Bits greatest = key_of<T>(__builtin_bit_cast(Bits, static_cast<T>(one.max)));
    keys.least = max(keys.least, static_cast<unsigned long long>(static_cast<Bits>(~least)));
    keys.greatest = max(keys.greatest, static_cast<unsigned long long>(greatest));
  }
  *range = keys;
}

}  // namespace mpress::codec::szp::cuda
