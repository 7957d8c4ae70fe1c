// Rows of elements and of quanta, as the warps of kernels that sum jointly hold them: each lane has
// 64 bytes of elements, 16 bytes of every 512.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/any_order.hpp"
#include "codec/cuda/warp.cuh"
#include "gpu/joint_sum.hpp"

namespace mpress::gpu {

using joint_sum::RowHead;

template <class T>
inline constexpr unsigned per_lane = 64 / sizeof(T);
template <class T>
inline constexpr unsigned per_chunk = 16 / sizeof(T);
inline constexpr unsigned chunks = 4;

/// Where value `v` of a lane is in its row.
template <class T>
__device__ unsigned place_of(unsigned v) {
  return (v / per_chunk<T> * 32 + threadIdx.x % 32) * per_chunk<T> + v % per_chunk<T>;
}

/// What is there of a row, of which memory has its first `count` elements.
template <class T>
__device__ bool is_whole(const T* row, std::size_t count) {
  return count >= joint_sum::row_elements(sizeof(T)) &&
         reinterpret_cast<std::uintptr_t>(row) % 16 == 0;
}

/// Elements that are not there are 0.
template <class T>
__device__ __forceinline__ void load_row(const T* row, std::size_t count, T (&x)[per_lane<T>]) {
  if (is_whole(row, count)) {
#pragma unroll
    for (unsigned c = 0; c < chunks; ++c) {
      const uint4 chunk = reinterpret_cast<const uint4*>(row)[c * 32 + threadIdx.x % 32];
      memcpy(x + c * per_chunk<T>, &chunk, sizeof chunk);
    }
    return;
  }
#pragma unroll
  for (unsigned v = 0; v < per_lane<T>; ++v) {
    const unsigned at = place_of<T>(v);
    x[v] = at < count ? row[at] : T(0);
  }
}

template <class T>
__device__ __forceinline__ void store_row(T* row, std::size_t count, const T (&x)[per_lane<T>]) {
  if (is_whole(row, count)) {
#pragma unroll
    for (unsigned c = 0; c < chunks; ++c) {
      uint4 chunk;
      memcpy(&chunk, x + c * per_chunk<T>, sizeof chunk);
      reinterpret_cast<uint4*>(row)[c * 32 + threadIdx.x % 32] = chunk;
    }
    return;
  }
#pragma unroll
  for (unsigned v = 0; v < per_lane<T>; ++v) {
    const unsigned at = place_of<T>(v);
    if (at < count) row[at] = x[v];
  }
}

template <unsigned number>
__device__ __forceinline__ void extent_of(const std::int32_t (&q)[number], std::int32_t& lo,
                                          std::int32_t& hi) {
  lo = hi = q[0];
#pragma unroll
  for (unsigned v = 1; v < number; ++v) {
    lo = min(lo, q[v]);
    hi = max(hi, q[v]);
  }
}

/// One element after another, of a lane's: seldom, and so that the others keep their registers.
template <class T>
__device__ __noinline__ bool quantize_each(codec::szp::Quantizer<T> z, const T (&x)[per_lane<T>],
                                           std::int32_t (&q)[per_lane<T>]) {
  bool has_all = true;
#pragma unroll 1
  for (unsigned v = 0; v < per_lane<T>; ++v) {
    T quantum = 0;
    bool has = codec::any_order::quantum_of(z, x[v], quantum);
    if constexpr (sizeof(T) == 8) {
      has = has && quantum >= -joint_sum::reach && quantum < joint_sum::reach;
    }
    has_all = has_all && has;
    q[v] = has ? static_cast<std::int32_t>(quantum) : 0;
  }
  return has_all;
}

/// By all lanes of a warp: elements of a row to quanta, as any_order::quantum_of() has them. False
/// where one has no quantum, or none that travels.
template <class T>
__device__ __forceinline__ bool quantize_row(const codec::szp::Quantizer<T>& z,
                                             const codec::any_order::QuickReach& quick,
                                             const T (&x)[per_lane<T>],
                                             std::int32_t (&q)[per_lane<T>]) {
  std::uint32_t strange = 0;
#pragma unroll
  for (unsigned v = 0; v < per_lane<T>; ++v) {
    q[v] = codec::any_order::next_quantum(z, x[v], strange);
  }
  std::int32_t lo, hi;
  extent_of(q, lo, hi);
  const bool are_small = strange == 0 && lo >= -quick.small && hi <= quick.small;
  if (__all_sync(~0u, are_small)) return true;
  if constexpr (sizeof(T) == 4) {
    bool are_near = lo >= -quick.near && hi <= quick.near;
#pragma unroll
    for (unsigned v = 0; v < per_lane<T>; ++v) {
      are_near &= codec::any_order::is_near(z, x[v], q[v]);
    }
    if (__all_sync(~0u, are_near)) return true;
  }
  T elements[per_lane<T>];
  std::int32_t quanta[per_lane<T>];
#pragma unroll
  for (unsigned v = 0; v < per_lane<T>; ++v) elements[v] = x[v];
  const bool has_all = quantize_each(z, elements, quanta);
#pragma unroll
  for (unsigned v = 0; v < per_lane<T>; ++v) q[v] = quanta[v];
  return __all_sync(~0u, has_all) != 0;
}

/// How a row of quanta travels.
template <unsigned number>
__device__ __forceinline__ RowHead head_of(const std::int32_t (&q)[number]) {
  std::int32_t lo, hi;
  extent_of(q, lo, hi);
  lo = codec::cuda::warp_min(lo);
  hi = codec::cuda::warp_max(hi);
  const std::uint32_t span = static_cast<std::uint32_t>(hi) - static_cast<std::uint32_t>(lo);
  const std::uint32_t needed = 32 - static_cast<std::uint32_t>(__clz(static_cast<int>(span)));
  constexpr std::uint32_t grain = 32 / number;
  return {lo, (needed + grain - 1) / grain * grain, {}};
}

/// 32-bit words that a lane's quanta take.
constexpr unsigned words_of(unsigned number, unsigned bits) { return number * bits / 32; }

// Words of a lane: groups of four lie together, behind them single ones, each with those of the
// other lanes beside it.

template <unsigned words>
__device__ __forceinline__ void store_words(std::byte* row, const std::uint32_t (&w)[words]) {
  const unsigned lane = threadIdx.x % 32;
#pragma unroll
  for (unsigned g = 0; 4 * g + 4 <= words; ++g) {
    reinterpret_cast<uint4*>(row)[g * 32 + lane] = {w[4 * g], w[4 * g + 1], w[4 * g + 2],
                                                    w[4 * g + 3]};
  }
#pragma unroll
  for (unsigned k = words / 4 * 4; k < words; ++k) {
    reinterpret_cast<std::uint32_t*>(row)[k * 32 + lane] = w[k];
  }
}

/// Past the cache that does not see what other devices write.
template <unsigned words>
__device__ __forceinline__ void load_words(const std::byte* row, std::uint32_t (&w)[words]) {
  const unsigned lane = threadIdx.x % 32;
#pragma unroll
  for (unsigned g = 0; 4 * g + 4 <= words; ++g) {
    const uint4 four = __ldcg(reinterpret_cast<const uint4*>(row) + g * 32 + lane);
    w[4 * g] = four.x;
    w[4 * g + 1] = four.y;
    w[4 * g + 2] = four.z;
    w[4 * g + 3] = four.w;
  }
#pragma unroll
  for (unsigned k = words / 4 * 4; k < words; ++k) {
    w[k] = __ldcg(reinterpret_cast<const std::uint32_t*>(row) + k * 32 + lane);
  }
}

/// Word `k` of the lane's `words`.
__device__ inline std::uint32_t word_at(const std::byte* row, unsigned words, unsigned k) {
  const unsigned lane = threadIdx.x % 32;
  const unsigned at = k < words / 4 * 4 ? (k / 4 * 32 + lane) * 4 + k % 4 : k * 32 + lane;
  return __ldcg(reinterpret_cast<const std::uint32_t*>(row) + at);
}

template <unsigned bits, unsigned number>
__device__ __forceinline__ void pack(const std::int32_t (&q)[number], std::int32_t least,
                                     std::uint32_t (&w)[words_of(number, bits)]) {
#pragma unroll
  for (unsigned k = 0; k < words_of(number, bits); ++k) w[k] = 0;
#pragma unroll
  for (unsigned v = 0; v < number; ++v) {
    const std::uint32_t above =
        static_cast<std::uint32_t>(q[v]) - static_cast<std::uint32_t>(least);
    constexpr unsigned word = 32;
    const unsigned at = v * bits / word, shift = v * bits % word;
    w[at] |= above << shift;
    if (shift + bits > word) w[at + 1] |= above >> (word - shift);
  }
}

template <unsigned bits, unsigned number>
__device__ __forceinline__ void add_unpacked(const std::uint32_t (&w)[words_of(number, bits)],
                                             std::int32_t least, std::int32_t (&q)[number]) {
  constexpr std::uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1;
#pragma unroll
  for (unsigned v = 0; v < number; ++v) {
    constexpr unsigned word = 32;
    const unsigned at = v * bits / word, shift = v * bits % word;
    std::uint32_t above = w[at] >> shift;
    if (shift + bits > word) above |= w[at + 1] << (word - shift);
    q[v] += static_cast<std::int32_t>((above & mask) + static_cast<std::uint32_t>(least));
  }
}

/// Calls act.operator()<bits>() with the width of a row of `number` quanta a lane that has any: most
/// have few.
template <unsigned number, unsigned bits = 32 / number, class Act>
__device__ __forceinline__ void with_bits(std::uint32_t wanted, const Act& act) {
  if (wanted == bits) return act.template operator()<bits>();
  constexpr unsigned grain = 32 / number;
  if constexpr (bits < 32) with_bits<number, bits + grain>(wanted, act);
}

/// Adds a row that came as quanta to `q`.
template <unsigned number>
__device__ __forceinline__ void add_row(const RowHead& head, const std::byte* row,
                                        std::int32_t (&q)[number]) {
  if (head.bits == 0) {
#pragma unroll
    for (unsigned v = 0; v < number; ++v) q[v] += head.least;
    return;
  }
  with_bits<number>(head.bits, [&]<unsigned bits>() {
    std::uint32_t w[words_of(number, bits)];
    load_words(row, w);
    add_unpacked<bits>(w, head.least, q);
  });
}

/// Value `v` of the lane in a row that came.
template <class T>
__device__ T value_at(const codec::szp::Quantizer<T>& z, const RowHead& head, const std::byte* row,
                      unsigned v) {
  if (head.bits == joint_sum::as_elements) {
    return *(reinterpret_cast<const volatile T*>(row) + place_of<T>(v));
  }
  const unsigned words = words_of(per_lane<T>, head.bits);
  const unsigned bit = v * head.bits;
  std::uint64_t above = 0;
  if (head.bits > 0) {
    above = word_at(row, words, bit / 32);
    if (bit % 32 + head.bits > 32) {
      above |= std::uint64_t{word_at(row, words, bit / 32 + 1)} << 32;
    }
    above = above >> (bit % 32) & ((std::uint64_t{1} << head.bits) - 1);
  }
  const auto quantum = static_cast<std::int32_t>(static_cast<std::uint32_t>(above) +
                                                 static_cast<std::uint32_t>(head.least));
  return codec::any_order::multiply(static_cast<T>(quantum), z.step);
}

}  // namespace mpress::gpu
