// What szp's CUDA encoder and decoder share: how a thread block holds a unit, and bit planes.
//
// A thread block takes a unit, each of its threads one block of 32 elements. Elements pass through
// shared memory in rows of one block, padded so that neither rows nor columns meet in a bank.
#pragma once

#include "codec/cuda/support.cuh"
#include "codec/szp/format.hpp"

namespace mpress::codec::szp::cuda {

using codec::cuda::Batch;
using codec::cuda::Control;
using codec::cuda::Segment;
using codec::cuda::SegmentEnd;
using codec::cuda::SegmentState;
using codec::cuda::select_bits;
using codec::cuda::Task;
using codec::cuda::weigh;
using codec::cuda::Workspace;

template <class T>
struct Shape {
  static constexpr unsigned elements = unit_bytes / sizeof(T);
  static constexpr unsigned threads = elements / block_elements;
  static constexpr unsigned warps = threads / 32;
  static constexpr unsigned words = unit_bytes / 4;
  static constexpr unsigned element_words = sizeof(T) / 4;
  static constexpr unsigned row_words = block_elements * element_words;
  static constexpr unsigned row = row_words + 4;  ///< padded
  static constexpr unsigned buffer = threads * row;
};

/// Where word `i` of an encoded unit is kept: blocks of equal even widths would meet in a bank.
__device__ inline unsigned padded(unsigned i) { return i + i / 32; }

/// Where 16-byte chunk `i` of a unit's elements starts.
template <class T>
__device__ unsigned chunk_at(unsigned i) {
  return 4 * (i + i / (Shape<T>::row_words / 4));
}

/// Where word `i` of a unit's elements is.
template <class T>
__device__ unsigned element_at(unsigned i) {
  return i + 4 * (i / Shape<T>::row_words);
}

/// Asks for a unit of a segment's `count` elements, by all threads of a block.
template <class T>
__device__ __forceinline__ void prefetch_unit(const unsigned char* elements, std::uint64_t count,
                                              std::uint32_t unit) {
  const std::uint64_t first = std::uint64_t{unit} * unit_bytes + 32 * threadIdx.x;
  const std::uint64_t end = count * sizeof(T);
#pragma unroll
  for (unsigned at = 0; at < unit_bytes; at += 32 * Shape<T>::threads) {
    if (first + at < end) codec::cuda::prefetch(elements + first + at);
  }
}

__device__ inline unsigned lane_mask_below() { return (1u << (threadIdx.x % 32)) - 1; }

__device__ inline std::uint32_t scan_inclusive(std::uint32_t value) {
#pragma unroll
  for (unsigned step = 1; step < 32; step *= 2) {
    // The exchange itself knows which lanes have one `step` below.
    asm volatile(
        "{ .reg .b32 below; .reg .pred any; shfl.sync.up.b32 below|any, %0, %1, 0, -1;"
        "  @any add.u32 %0, %0, below; }"
        : "+r"(value)
        : "r"(step));
  }
  return value;
}

// ---- Bit planes -----------------------------------------------------------------------------

template <unsigned distance, unsigned count>
__device__ __forceinline__ void exchange_bits(std::uint32_t (&rows)[count]) {
  constexpr std::uint32_t low = distance == 4   ? 0x0F0F0F0Fu
                                : distance == 2 ? 0x33333333u
                                                : 0x55555555u;
#pragma unroll
  for (unsigned i = 0; i < count; ++i) {
    if ((i & distance) != 0) continue;
    const std::uint32_t a = rows[i];
    const std::uint32_t b = rows[i + distance];
    rows[i] = select_bits(low, a, b << distance);
    rows[i + distance] = select_bits(low, a >> distance, b);
  }
}

/// Transposes four 8 x 8 bit matrices; a matrix is the same byte of every row.
__device__ __forceinline__ void transpose_bits(std::uint32_t (&rows)[8]) {
  exchange_bits<4>(rows);
  exchange_bits<2>(rows);
  exchange_bits<1>(rows);
}

/// The planes of 32 residuals of up to 32 bits.
__device__ __forceinline__ void to_planes(const std::uint32_t (&r)[32],
                                          std::uint32_t (&planes)[4][8]) {
#pragma unroll
  for (unsigned j = 0; j < 8; ++j) {
#pragma unroll
    for (unsigned half = 0; half < 2; ++half) {
      const unsigned select = half == 0 ? 0x5140 : 0x7362;
      const std::uint32_t low = __byte_perm(r[j], r[j + 8], select);
      const std::uint32_t high = __byte_perm(r[j + 16], r[j + 24], select);
      planes[2 * half][j] = __byte_perm(low, high, 0x5410);
      planes[2 * half + 1][j] = __byte_perm(low, high, 0x7632);
    }
  }
#pragma unroll
  for (unsigned b = 0; b < 4; ++b) transpose_bits(planes[b]);
}

/// The same of residuals below 2^bits, packed: word k holds those of elements k, k + bits,
/// k + 2 * bits, ... in fields of `bits` bits.
__device__ __forceinline__ void to_planes(const std::uint32_t (&r)[4],
                                          std::uint32_t (&planes)[1][4]) {
#pragma unroll
  for (unsigned k = 0; k < 4; ++k) planes[0][k] = r[k];
  exchange_bits<2>(planes[0]);
  exchange_bits<1>(planes[0]);
}

__device__ __forceinline__ void to_planes(const std::uint32_t (&r)[8],
                                          std::uint32_t (&planes)[1][8]) {
#pragma unroll
  for (unsigned k = 0; k < 8; ++k) planes[0][k] = r[k];
  transpose_bits(planes[0]);
}

__device__ __forceinline__ void to_planes(const std::uint32_t (&r)[16],
                                          std::uint32_t (&planes)[2][8]) {
#pragma unroll
  for (unsigned k = 0; k < 8; ++k) {
    planes[0][k] = __byte_perm(r[k], r[k + 8], 0x6240);
    planes[1][k] = __byte_perm(r[k], r[k + 8], 0x7351);
  }
#pragma unroll
  for (unsigned b = 0; b < 2; ++b) transpose_bits(planes[b]);
}

/// 32 residuals of 8 * bytes planes.
template <unsigned bytes>
__device__ __forceinline__ void from_planes(std::uint32_t (&planes)[bytes][8],
                                            std::uint32_t (&r)[32]) {
#pragma unroll
  for (unsigned b = 0; b < bytes; ++b) transpose_bits(planes[b]);
#pragma unroll
  for (unsigned j = 0; j < 8; ++j) {
    if constexpr (bytes == 1) {
#pragma unroll
      for (unsigned k = 0; k < 4; ++k) r[j + 8 * k] = planes[0][j] >> (8 * k) & 255;
    } else {
      const std::uint32_t u = __byte_perm(planes[0][j], planes[1][j], 0x5140);
      const std::uint32_t v = __byte_perm(planes[0][j], planes[1][j], 0x7362);
      if constexpr (bytes == 2) {
        r[j] = u & 0xFFFF;
        r[j + 8] = u >> 16;
        r[j + 16] = v & 0xFFFF;
        r[j + 24] = v >> 16;
      } else {
        const std::uint32_t s = __byte_perm(planes[2][j], planes[3][j], 0x5140);
        const std::uint32_t t = __byte_perm(planes[2][j], planes[3][j], 0x7362);
        r[j] = __byte_perm(u, s, 0x5410);
        r[j + 8] = __byte_perm(u, s, 0x7632);
        r[j + 16] = __byte_perm(v, t, 0x5410);
        r[j + 24] = __byte_perm(v, t, 0x7632);
      }
    }
  }
}

/// Writes planes [first, width) of a block whose plane 0 is word `at`; `planes` start at `first`.
template <unsigned groups, unsigned size>
__device__ __forceinline__ void store_planes(std::uint32_t* words, unsigned at, unsigned first,
                                             unsigned width,
                                             const std::uint32_t (&planes)[groups][size]) {
  // Bits of masks become predicates seven at a time, unlike comparisons; the compiler is not to
  // see where the masks come from.
  std::uint32_t* row = words + padded(at + first);
  const std::uint32_t stored = ~__funnelshift_lc(0, ~0u, width > first ? width - first : 0);
  std::uint32_t ahead = stored & (~0u >> ((at + first) % 32));  // of the padding
  std::uint32_t behind = (stored ^ ahead) >> 1;                 // never plane 0
  asm("" : "+r"(ahead), "+r"(behind));
#pragma unroll
  for (unsigned p = 0; p < groups * size; ++p) {
    if ((ahead >> p & 1) != 0) row[p] = planes[p / size][p % size];
  }
#pragma unroll
  for (unsigned p = 1; p < groups * size; ++p) {
    if ((behind >> (p - 1) & 1) != 0) row[p + 1] = planes[p / size][p % size];
  }
}

template <unsigned bytes>
__device__ __forceinline__ void load_planes(const std::uint32_t* words, unsigned at, unsigned first,
                                            unsigned width, std::uint32_t (&r)[32]) {
  std::uint32_t planes[bytes][8];
#pragma unroll
  for (unsigned p = 0; p < 8 * bytes; ++p) {
    planes[p / 8][p % 8] = first + p < width ? words[padded(at + first + p)] : 0;
  }
  from_planes<bytes>(planes, r);
}

}  // namespace mpress::codec::szp::cuda
