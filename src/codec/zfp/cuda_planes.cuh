// Bit planes of a block of zfp, in registers: from coefficients and back, and their code. Words of
// 32 bits, indexed by constants only.
#pragma once

#include <cstdint>

#include "codec/zfp/cuda_tables.cuh"

namespace mpress::codec::zfp::cuda {

// ---- Coefficients <-> planes ------------------------------------------------------------------
//
// 32 bits of four coefficients are 32 planes, in pairs of one byte, the first plane of a pair in
// its low half. Pair 4 * g + r is byte 3 - g of pairs[r]: bits reach that place in two steps.

/// The bits of `a` where `mask` is set, else those of `b`: one instruction in this form.
__device__ __forceinline__ std::uint32_t select_bits(std::uint32_t mask, std::uint32_t a,
                                                     std::uint32_t b) {
  return b ^ ((a ^ b) & mask);
}

template <unsigned distance>
__device__ __forceinline__ void exchange_bits(std::uint32_t& low, std::uint32_t& high,
                                              std::uint32_t mask) {
  const std::uint32_t a = select_bits(mask, low, high << distance);
  high = select_bits(mask, low >> distance, high);
  low = a;
}

__device__ __forceinline__ void transpose_4x4(std::uint32_t (&v)[4]) {
  exchange_bits<1>(v[0], v[1], 0x55555555);
  exchange_bits<1>(v[2], v[3], 0x55555555);
  exchange_bits<2>(v[0], v[2], 0x33333333);
  exchange_bits<2>(v[1], v[3], 0x33333333);
}

__device__ __forceinline__ void coefficients_to_pairs(const std::uint32_t (&u)[4],
                                                      std::uint32_t (&pairs)[4]) {
  std::uint32_t v[4] = {u[0], u[1], u[2], u[3]};
  transpose_4x4(v);  // now nibble k of v[j] is the plane of bit 4 * k + j
  constexpr std::uint32_t low = 0x0F0F0F0F;
  pairs[0] = select_bits(low, v[3] >> 4, v[2]);
  pairs[1] = select_bits(low, v[1] >> 4, v[0]);
  pairs[2] = select_bits(low, v[3], v[2] << 4);
  pairs[3] = select_bits(low, v[1], v[0] << 4);
}

__device__ __forceinline__ void pairs_to_coefficients(const std::uint32_t (&pairs)[4],
                                                      std::uint32_t (&u)[4]) {
  constexpr std::uint32_t low = 0x0F0F0F0F;
  u[3] = select_bits(low, pairs[2], pairs[0] << 4);
  u[2] = select_bits(low, pairs[2] >> 4, pairs[0]);
  u[1] = select_bits(low, pairs[3], pairs[1] << 4);
  u[0] = select_bits(low, pairs[3] >> 4, pairs[1]);
  transpose_4x4(u);
}

/// Planes 8 * g to 8 * g + 7 as the stream has them where all bits of a plane are coded.
template <int g>
__device__ __forceinline__ std::uint32_t verbatim_planes(const std::uint32_t (&pairs)[4]) {
  constexpr unsigned b = 3 - g;
  constexpr unsigned two = b | (b + 4) << 4;
  return __byte_perm(__byte_perm(pairs[0], pairs[1], two), __byte_perm(pairs[2], pairs[3], two),
                     0x5410);
}

template <int g>
__device__ __forceinline__ void set_verbatim_planes(std::uint32_t planes,
                                                    std::uint32_t (&pairs)[4]) {
  constexpr unsigned keep = 0x3210;
  constexpr unsigned at = 4 * (3 - g);
#pragma unroll
  for (unsigned r = 0; r < 4; ++r) {
    pairs[r] = __byte_perm(pairs[r], planes, (keep & ~(15u << at)) | (4 + r) << at);
  }
}

// ---- Words ------------------------------------------------------------------------------------

/// Shifts by `bits` % 32.
template <int words>
__device__ __forceinline__ void shift_up(std::uint32_t (&w)[words], std::uint32_t bits) {
#pragma unroll
  for (int i = words - 1; i > 0; --i) w[i] = __funnelshift_l(w[i - 1], w[i], bits);
  w[0] = __funnelshift_l(0, w[0], bits);
}

template <int words>
__device__ __forceinline__ void shift_down(std::uint32_t (&w)[words], std::uint32_t bits) {
#pragma unroll
  for (int i = 0; i + 1 < words; ++i) w[i] = __funnelshift_r(w[i], w[i + 1], bits);
  w[words - 1] = __funnelshift_r(w[words - 1], 0, bits);
}

// ---- Coding of planes -------------------------------------------------------------------------

/// Groups of four pairs that can matter to blocks of `words` words.
template <int words, int halves>
inline constexpr int groups_of = words == 1 ? 2 : 4 * halves;
template <int words>
inline constexpr int pairs_of_last_group = words == 1 ? 2 : 4;

/// The code of planes whose first is not empty, from bit 5 of `code` on; what does not fit in
/// `code` is lost. Called by whole warps.
template <int words, int halves>
__device__ __forceinline__ void encode_pairs(const std::uint32_t (&pairs)[halves][4],
                                             const std::uint32_t* table,
                                             std::uint32_t (&code)[words]) {
  constexpr int groups = groups_of<words, halves>;
  std::uint32_t entries[groups][4];
  std::uint32_t entry = 0;
  int coded = 0;  // groups that are not verbatim for every lane
#pragma unroll
  for (int g = 0; g < groups; ++g) {
    if (words > 1 && g > 0 && coded == g && __all_sync(~0u, entry >> 24 == 4)) continue;
    if (words > 1 && coded != g) continue;
    coded = g + 1;
    const int last = g + 1 == groups ? pairs_of_last_group<words> : 4;
#pragma unroll
    for (int r = 0; r < last; ++r) {
      // Byte 3 - g % 4 of the pairs, above it the state in the entry before, above that zeros.
      const std::uint32_t index =
          __byte_perm(pairs[g / 4][r], entry, 0x6670u | (3u - static_cast<unsigned>(g) % 4));
      entry = table[index];
      entries[g][r] = entry;
    }
  }
#pragma unroll
  for (int i = 0; i < words; ++i) code[i] = 0;
#pragma unroll
  for (int g = groups - 1; g >= 0; --g) {
    if (words > 1 && g >= coded) {
      const std::uint32_t planes = g % 4 == 0   ? verbatim_planes<0>(pairs[g / 4])
                                   : g % 4 == 1 ? verbatim_planes<1>(pairs[g / 4])
                                   : g % 4 == 2 ? verbatim_planes<2>(pairs[g / 4])
                                                : verbatim_planes<3>(pairs[g / 4]);
#pragma unroll
      for (int i = words - 1; i > 0; --i) code[i] = code[i - 1];
      if (words > 1) code[1] |= planes >> 27;
      code[0] = planes << 5;
    } else {
      const int last = g + 1 == groups ? pairs_of_last_group<words> : 4;
#pragma unroll
      for (int r = last - 1; r >= 0; --r) {
        shift_up(code, entries[g][r]);
        code[0] |= entries[g][r] & 0x00FFFFE0;
      }
    }
  }
}

/// The inverse: `rest` holds the bits behind the first group test, from bit 2 on. Adds the bits
/// consumed to `at`, which then belongs to the returned number of planes. Called by whole warps.
template <int words, int halves>
__device__ __forceinline__ int decode_pairs(std::uint32_t (&rest)[words],
                                            const std::uint32_t* table,
                                            std::uint32_t (&pairs)[halves][4], int& at) {
  constexpr int groups = groups_of<words, halves>;
  std::uint32_t entry = 0;
  int coded = 0;
#pragma unroll
  for (int h = 0; h < halves; ++h) {
#pragma unroll
    for (int r = 0; r < 4; ++r) pairs[h][r] = 0;
  }
#pragma unroll
  for (int g = 0; g < groups; ++g) {
    if (words > 1 && g > 0 && coded == g && __all_sync(~0u, entry >> 29 == 4)) continue;
    if (words > 1 && coded != g) continue;
    coded = g + 1;
    const int last = g + 1 == groups ? pairs_of_last_group<words> : 4;
    std::uint32_t consumed = 0;
#pragma unroll
    for (int r = 0; r < last; ++r) {
      const unsigned address = (rest[0] & 0xFFC) + (entry >> 29 << 12);
      entry =
          *reinterpret_cast<const std::uint32_t*>(reinterpret_cast<const char*>(table) + address);
      consumed += entry;
      shift_down(rest, entry);
      constexpr unsigned keep = 0x3210;
      const unsigned place = 4 * (3 - static_cast<unsigned>(g) % 4);
      pairs[g / 4][r] = __byte_perm(pairs[g / 4][r], entry, (keep & ~(15u << place)) | 5u << place);
    }
    at += consumed & 0xFF;
  }
  if (words > 1 && coded != groups) {
    shift_down(rest, 2);
#pragma unroll
    for (int g = 1; g < groups; ++g) {
      if (g < coded) continue;
      if (g % 4 == 0) set_verbatim_planes<0>(rest[0], pairs[g / 4]);
      if (g % 4 == 1) set_verbatim_planes<1>(rest[0], pairs[g / 4]);
      if (g % 4 == 2) set_verbatim_planes<2>(rest[0], pairs[g / 4]);
      if (g % 4 == 3) set_verbatim_planes<3>(rest[0], pairs[g / 4]);
#pragma unroll
      for (int i = 0; i + 1 < words; ++i) rest[i] = rest[i + 1];
      rest[words - 1] = 0;
    }
  }
  return words > 1 ? coded * 8 : 12;
}

}  // namespace mpress::codec::zfp::cuda
