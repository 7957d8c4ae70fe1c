// One block of zfp a thread, in registers: words of 32 bits, indexed by constants only.
#pragma once

#include <cstdint>

#include "codec/zfp_cuda_tables.cuh"

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

// ---- A block ----------------------------------------------------------------------------------
//
// `words` is the number of words that a kernel keeps of a block; 0 stands for blocks with no more
// than short_bits for planes, which fit in one.

template <int words>
inline constexpr int code_words = words == 0 ? 1 : words;

/// Halves of the coefficients whose planes can reach `words` words.
template <typename Element, int words>
inline constexpr int halves_of = sizeof(Element) == 8 && words > 2 ? 2 : 1;

/// The tables that kernels of `words` words use, in shared memory.
template <int words>
struct EncodeTables {
  using Table = EncodeTable;
};
template <>
struct EncodeTables<0> {
  using Table = ShortEncodeTable;
};
template <int words>
struct DecodeTables {
  using Table = DecodeTable;
};
template <>
struct DecodeTables<0> {
  using Table = ShortDecodeTable;
};

__device__ __forceinline__ unsigned largest_exponent(const float (&x)[4], bool& zero) {
  std::uint32_t largest = 0;  // without the signs
#pragma unroll
  for (float v : x) largest = max(largest, __float_as_uint(v) << 1);
  zero = largest == 0;
  return (largest >> 24) + 1;
}

__device__ __forceinline__ unsigned largest_exponent(const double (&x)[4], bool& zero) {
  std::uint32_t largest = 0;
  std::uint32_t low = 0;
#pragma unroll
  for (double v : x) {
    largest = max(largest, static_cast<std::uint32_t>(__double2hiint(v)) & 0x7FFFFFFFu);
    low |= static_cast<std::uint32_t>(__double2loint(v));
  }
  zero = (largest | low) == 0;
  return (largest >> 20) + 1;
}

/// As to_fixed(): the products are exact, in two factors where one would not be normal.
__device__ __forceinline__ void to_fixed(float (&x)[4], unsigned exponent, std::uint32_t (&v)[4]) {
  unsigned field = 284 - exponent;
  if (exponent < 30) {
#pragma unroll
    for (float& e : x) e *= 0x1p64f;
    field -= 64;
  }
  const float scale = __uint_as_float(field << 23);
#pragma unroll
  for (int i = 0; i < 4; ++i) v[i] = static_cast<std::uint32_t>(__float2int_rz(x[i] * scale));
}

__device__ __forceinline__ void to_fixed(double (&x)[4], unsigned exponent, std::uint64_t (&v)[4]) {
  unsigned field = 2108 - exponent;
  if (exponent < 62) {
#pragma unroll
    for (double& e : x) e *= 0x1p128;
    field -= 128;
  }
  const double scale = __hiloint2double(static_cast<int>(field << 20), 0);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    v[i] = static_cast<std::uint64_t>(__double2ll_rz(x[i] * scale));
  }
}

/// Coefficients without their leading empty planes, by halves, high first; returns how many.
template <int halves>
__device__ __forceinline__ unsigned normalise(const std::uint32_t (&u)[4],
                                              std::uint32_t (&out)[halves][4]) {
  const auto lead = static_cast<unsigned>(__clz(static_cast<int>(u[0] | u[1] | u[2] | u[3] | 1)));
#pragma unroll
  for (int i = 0; i < 4; ++i) out[0][i] = u[i] << lead;
  return lead;
}

template <int halves>
__device__ __forceinline__ unsigned normalise(const std::uint64_t (&u)[4],
                                              std::uint32_t (&out)[halves][4]) {
  const std::uint64_t any = u[0] | u[1] | u[2] | u[3] | 1;
  const auto lead = static_cast<unsigned>(__clzll(static_cast<long long>(any)));
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const std::uint64_t shifted = u[i] << lead;
    out[0][i] = static_cast<std::uint32_t>(shifted >> 32);
    if (halves > 1) out[halves - 1][i] = static_cast<std::uint32_t>(shifted);
  }
  return lead;
}

/// Encodes the block `x` (which it spoils) to `code`, whose bits from the block's end on mean
/// nothing, and neither do any where not all elements are finite: whether they are is returned.
/// Called by whole warps.
template <typename Element, int words>
__device__ __forceinline__ bool encode_elements(Element (&x)[4],
                                                const typename EncodeTables<words>::Table& table,
                                                std::uint32_t (&code)[code_words<words>]) {
  using T = Traits<Element>;
  using Word = typename T::Word;
  constexpr int halves = halves_of<Element, words>;
  bool zero;
  const unsigned exponent = largest_exponent(x, zero);
  const bool finite = !not_finite<Element>(exponent);
  const unsigned header = zero ? 0 : exponent << 1 | 1;
  Word u[4];
  to_fixed(x, exponent, u);
  lift(u);
#pragma unroll
  for (Word& v : u) v = (v + kNegabinary<Word>)^kNegabinary<Word>;
  if constexpr (sizeof(Element) == 8) {
    const Word kept = ~Word{0} << lowest_plane<Element>(exponent);
#pragma unroll
    for (Word& v : u) v &= kept;
  }
  std::uint32_t planes[halves][4];
  const unsigned lead = normalise(u, planes);
  if constexpr (words == 0) {
    std::uint32_t index = planes[0][0] >> 29;
#pragma unroll
    for (int i = 1; i < 4; ++i) index = __funnelshift_l(planes[0][i], index, 3);
    const std::uint32_t bits = table.code[index];
    code[0] = (lead < short_bits ? bits << (T::kHeaderBits + lead) : 0) | header;
  } else {
    std::uint32_t pairs[halves][4];
#pragma unroll
    for (int h = 0; h < halves; ++h) coefficients_to_pairs(planes[h], pairs[h]);
    encode_pairs(pairs, &table.pair[0][0], code);
    const unsigned up = lead + T::kHeaderBits - 5;
    if constexpr (sizeof(Element) == 8) {
      if (up >= 32) {
#pragma unroll
        for (int i = words - 1; i > 0; --i) code[i] = code[i - 1];
        code[0] = 0;
      }
    }
    // f32: the largest coefficient has six bits or more, so lead is below 27.
    shift_up(code, up);
    code[0] |= header;
  }
  return finite;
}

/// Where the budget cut a scan for a set bit, the zeros read beyond it took the scan to the last
/// element; the bit belongs where the scan stood. Only the last plane that is not empty can be
/// such a one. `over` is how far beyond the budget the plane behind the last bit would begin.
template <typename Word>
__device__ __forceinline__ void mend_cut(Word (&u)[4], int over) {
  const Word any = u[0] | u[1] | u[2] | u[3];
  const Word lowest = any & (Word{0} - any);
  const int zeros = sizeof(Word) == 4 ? __ffs(static_cast<int>(lowest)) - 1
                                      : __ffsll(static_cast<long long>(lowest)) - 1;
  over -= 4 * zeros;
  const Word moved = over >= 1 && over <= 3 ? u[3] & lowest : 0;
  u[3] ^= moved;
  u[2] |= over == 1 ? moved : 0;
  u[1] |= over == 2 ? moved : 0;
  u[0] |= over == 3 ? moved : 0;
}

/// The integer times a power of two, rounded once; in two factors where one would not be normal.
__device__ __forceinline__ void to_elements(const std::uint32_t (&v)[4], unsigned exponent,
                                            float (&x)[4]) {
  const bool tiny = exponent <= 30;
  const float scale = __uint_as_float((exponent - 30 + (tiny ? 64 : 0)) << 23);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    x[i] = __int2float_rn(static_cast<int>(v[i])) * scale;
    if (tiny) x[i] *= 0x1p-64f;
  }
}

__device__ __forceinline__ void to_elements(const std::uint64_t (&v)[4], unsigned exponent,
                                            double (&x)[4]) {
  const bool tiny = exponent <= 62;
  const double scale =
      __hiloint2double(static_cast<int>((exponent - 62 + (tiny ? 128 : 0)) << 20), 0);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    x[i] = __ll2double_rn(static_cast<long long>(v[i])) * scale;
    if (tiny) x[i] *= 0x1p-128;
  }
}

/// Decodes the block in `code`, zeros beyond its `block_bits`. Called by whole warps.
template <typename Element, int words>
__device__ __forceinline__ void decode_elements(std::uint32_t (&code)[code_words<words>],
                                                unsigned block_bits,
                                                const typename DecodeTables<words>::Table& table,
                                                Element (&x)[4]) {
  using T = Traits<Element>;
  using Word = typename T::Word;
  constexpr int halves = halves_of<Element, words>;
  constexpr int header = T::kHeaderBits;
  const unsigned exponent = (code[0] >> 1) & ((1u << T::kExponentBits) - 1);
  bool zero = (code[0] & 1) == 0;
  Word u[4];
  if constexpr (words == 0) {
    const std::uint32_t marked = (code[0] >> header) | 1u << (block_bits - header);
    const auto lead = static_cast<unsigned>(__ffs(static_cast<int>(marked))) - 1;
    const std::uint32_t planes = table.planes[marked >> lead >> 1];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t top = ((planes << (20 + 3 * i)) & 0xE0000000u) >> lead;
      u[i] = static_cast<Word>(top) << (T::kPrecision - 32);
    }
  } else {
    shift_down(code, header - 1);
    Word ahead = __funnelshift_r(code[0], words > 1 ? code[words > 1] : 0, 1);
    if constexpr (sizeof(Element) == 8 && words > 1) {
      ahead |=
          static_cast<Word>(__funnelshift_r(code[1], words > 2 ? code[words > 2 ? 2 : 0] : 0, 1))
          << 32;
    }
    const int first =
        sizeof(Word) == 4 ? __ffs(static_cast<int>(ahead)) : __ffsll(static_cast<long long>(ahead));
    zero = zero || first == 0;
    const unsigned lead = zero ? 0 : static_cast<unsigned>(first) - 1;
    if constexpr (sizeof(Element) == 8) {
      if (lead >= 32) {
#pragma unroll
        for (int i = 0; i + 1 < words; ++i) code[i] = code[i + 1];
        code[words - 1] = 0;
      }
    }
    shift_down(code, lead);
    int at = static_cast<int>(header + lead + 1);
    std::uint32_t pairs[halves][4];
    const int planes = decode_pairs(code, &table.pair[0][0], pairs, at);
    std::uint32_t parts[halves][4];
#pragma unroll
    for (int h = 0; h < halves; ++h) pairs_to_coefficients(pairs[h], parts[h]);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      u[i] = parts[0][i];
      if constexpr (sizeof(Element) == 8) {
        u[i] = u[i] << 32 | (halves > 1 ? parts[halves - 1][i] : 0);
      }
    }
    mend_cut(u, at - static_cast<int>(block_bits) + 4 * (T::kPrecision - planes));
    const Word kept = ~Word{0} << lowest_plane<Element>(exponent);
#pragma unroll
    for (Word& v : u) v = (v >> lead) & kept;
  }
#pragma unroll
  for (Word& v : u) v = (v ^ kNegabinary<Word>)-kNegabinary<Word>;
  unlift(u);
  to_elements(u, exponent, x);
#pragma unroll
  for (Element& v : x) v = zero ? Element{0} : v;
}

}  // namespace mpress::codec::zfp::cuda
