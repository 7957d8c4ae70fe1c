// One block of zfp a thread, in registers.
#pragma once

#include <cstdint>

#include "codec/zfp/cuda_planes.cuh"

namespace mpress::codec::zfp::cuda {

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
