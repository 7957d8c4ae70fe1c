// One unit of mpc on a thread block: a thread has one block of 8 elements, so that the 16 lanes of
// half a warp have a group. What encoding and decoding share.
#pragma once

#include <cstdint>

#include "codec/cuda/support.cuh"
#include "codec/mpc/format.hpp"
#include "codec/mpc/unit.hpp"

namespace mpress::codec::mpc::cuda {

inline constexpr unsigned all_lanes = ~0u;

template <class Word>
inline constexpr unsigned unit_threads = kUnitBlocks<Word>;
/// Thread blocks on a multiprocessor: registers are cut to what these need.
template <class Word>
inline constexpr unsigned resident_blocks = sizeof(Word) == 4 ? 5 : 6;
template <class Word>
inline constexpr unsigned unit_warps = unit_threads<Word> / 32;
template <class Word>
inline constexpr unsigned word_parts = sizeof(Word) / 4;  // in 32-bit words

/// Elements of unit `unit` of a segment of `count`.
template <class Word>
__device__ unsigned unit_elements(std::uint64_t count, std::uint64_t unit) {
  const std::uint64_t left = count - unit * kUnit<Word>;
  return left < kUnit<Word> ? static_cast<unsigned>(left) : kUnit<Word>;
}

/// Where de-interleaving puts the elements of a unit of n: component after component.
struct Interleaving {
  unsigned dim, longer, length;  // the first `longer` components have length + 1 elements

  __device__ Interleaving(unsigned n, unsigned dim) : dim(dim), longer(n % dim), length(n / dim) {}

  /// The place of element i.
  __device__ unsigned place(unsigned i) const {
    const unsigned component = i % dim;
    return component * length + min(component, longer) + i / dim;
  }

  /// Walks over elements in the order of their places.
  struct Walk {
    unsigned component, index;
  };
  __device__ Walk walk(unsigned place) const {
    const unsigned split = longer * (length + 1);
    if (place < split) return {place / (length + 1), place % (length + 1)};
    return {longer + (place - split) / length, (place - split) % length};
  }
  __device__ unsigned element(Walk w) const { return w.component + w.index * dim; }
  __device__ void advance(Walk& w) const {
    if (++w.index == length + (w.component < longer ? 1 : 0)) w = {w.component + 1, 0};
  }
};

// ---- Copies that run beside the threads -------------------------------------------------------

/// Copies `size` (4, 8, 16) bytes to shared memory; only the first `used` are read, the others 0. A
/// word of which `used` has a part may be 0, too.
template <unsigned size>
__device__ void copy_async(void* shared, const void* global, unsigned used = size) {
#if __CUDA_ARCH__ >= 800
  const auto to = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  if constexpr (size == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(used)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(to), "l"(global), "r"(used),
                 "n"(size)
                 : "memory");
  }
#else
  auto* to = static_cast<std::uint32_t*>(shared);
  const auto* from = static_cast<const std::uint32_t*>(global);
  for (unsigned i = 0; i < size / 4; ++i) to[i] = 4 * i + 4 <= used ? from[i] : 0;
#endif
}

/// Waits for this thread's copies.
__device__ inline void await_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// ---- Bit planes -------------------------------------------------------------------------------

/// Exchanges the bits of `b` that `mask` selects with those of `a` that are `shift` above them.
template <unsigned shift, std::uint32_t mask>
__device__ void exchange(std::uint32_t& a, std::uint32_t& b) {
  const std::uint32_t low = codec::cuda::select_bits(mask, a, b << shift);
  b = codec::cuda::select_bits(mask, a >> shift, b);
  a = low;
}

/// 4 x 4 bytes.
__device__ inline void transpose_bytes(std::uint32_t& a, std::uint32_t& b, std::uint32_t& c,
                                       std::uint32_t& d) {
  const std::uint32_t ab_low = __byte_perm(a, b, 0x5140), ab_high = __byte_perm(a, b, 0x7362);
  const std::uint32_t cd_low = __byte_perm(c, d, 0x5140), cd_high = __byte_perm(c, d, 0x7362);
  a = __byte_perm(ab_low, cd_low, 0x5410);
  b = __byte_perm(ab_low, cd_low, 0x7632);
  c = __byte_perm(ab_high, cd_high, 0x5410);
  d = __byte_perm(ab_high, cd_high, 0x7632);
}

/// Byte j of register i, bit k, with byte j of register k, bit i. Its own inverse.
__device__ inline void exchange_bits(std::uint32_t (&r)[8]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) exchange<4, 0x0F0F0F0Fu>(r[i], r[i + 4]);
#pragma unroll
  for (int i = 0; i < 8; i += 4) {
    exchange<2, 0x33333333u>(r[i], r[i + 2]);
    exchange<2, 0x33333333u>(r[i + 1], r[i + 3]);
  }
#pragma unroll
  for (int i = 0; i < 8; i += 2) exchange<1, 0x55555555u>(r[i], r[i + 1]);
}

/// 8 elements of 32 bits to their 32 planes, 4 a word.
__device__ inline void to_planes(std::uint32_t (&r)[8], std::uint32_t* planes) {
  exchange_bits(r);
  transpose_bytes(r[0], r[1], r[2], r[3]);
  transpose_bytes(r[4], r[5], r[6], r[7]);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    planes[2 * j] = r[j];
    planes[2 * j + 1] = r[j + 4];
  }
}

__device__ inline void from_planes(const std::uint32_t* planes, std::uint32_t (&r)[8]) {
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    r[j] = planes[2 * j];
    r[j + 4] = planes[2 * j + 1];
  }
  transpose_bytes(r[0], r[1], r[2], r[3]);
  transpose_bytes(r[4], r[5], r[6], r[7]);
  exchange_bits(r);
}

// ---- Warps ------------------------------------------------------------------------------------

__device__ inline unsigned bit_width(std::uint32_t x) {
  unsigned highest;  // ~0 where there is none
  asm("bfind.u32 %0, %1;" : "=r"(highest) : "r"(x));
  return highest + 1;
}
__device__ inline unsigned bit_width(std::uint64_t x) {
  const auto high = static_cast<std::uint32_t>(x >> 32);
  const unsigned width = bit_width(high != 0 ? high : static_cast<std::uint32_t>(x));
  return high != 0 ? width + 32 : width;
}

/// x + y of the lane `step` before, where there is one.
__device__ inline std::uint32_t add_lane_before(std::uint32_t x, std::uint32_t y, unsigned step) {
  asm volatile(
      "{.reg .pred p; .reg .b32 r;\n\t"
      "shfl.sync.up.b32 r|p, %1, %2, 0, 0xffffffff;\n\t"
      "@p add.u32 %0, %0, r;}"
      : "+r"(x)
      : "r"(y), "r"(step));
  return x;
}

/// Inclusive sums over the lanes.
__device__ inline std::uint32_t sum_lanes(std::uint32_t x) {
#pragma unroll
  for (unsigned step = 1; step < 32; step *= 2) x = add_lane_before(x, x, step);
  return x;
}
__device__ inline std::uint64_t sum_lanes(std::uint64_t x) {
#pragma unroll
  for (unsigned step = 1; step < 32; step *= 2) {
    const std::uint64_t before = __shfl_up_sync(all_lanes, x, step);
    if (threadIdx.x % 32 >= step) x += before;
  }
  return x;
}

// ---- Checksums --------------------------------------------------------------------------------

/// The checksum of words at `first`, `first` + stride, ... from their sum and the sum of each times
/// its number: a weight is a multiple of the index, and 1 more where that is even. `stride` is
/// even.
__device__ inline std::uint32_t weigh_rounds(std::uint32_t sum, std::uint32_t by_round,
                                             std::uint64_t first, unsigned stride) {
  const auto index = static_cast<std::uint32_t>(first);
  constexpr std::uint32_t factor = checksum_weight(1);
  static_assert(factor % 2 == 1 && checksum_weight(2) == 2 * factor + 1);
  return factor * (index * sum + stride * by_round) + (index % 2 == 0 ? sum : 0);
}

__device__ inline std::uint32_t header_checksum(const Header& header) {
  const auto count = header.count;
  return weigh(header.version | header.flags << 8 | header.dim << 16 |
                   std::uint32_t{header.type} << 24,
               0) +
         weigh(static_cast<std::uint32_t>(count), 2) +
         weigh(static_cast<std::uint32_t>(count >> 32), 3);
}

/// Word i of shared memory holds elements that are aligned to 4 bytes only.
template <class Word>
__device__ Word load_element(const std::uint32_t* words, unsigned i) {
  if constexpr (sizeof(Word) == 4) {
    return words[i];
  } else {
    return words[2 * i] | std::uint64_t{words[2 * i + 1]} << 32;
  }
}

}  // namespace mpress::codec::mpc::cuda
