// One block of the codec `zfp`, in scalars that host and CUDA twins share. Vector kernels do the
// same in lanes; whatever they write must equal what these functions write.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "codec/zfp/format.hpp"

namespace mpress::codec::zfp {

// ---- Floating point <-> fixed point ---------------------------------------------------------

/// The exponent field that libzfp stores, from the bits of the largest |x| of a block: frexp's
/// exponent plus the bias, subnormals clamped to 1, zero 0 (libzfp: exponent_block()).
template <typename Element>
MPRESS_HOST_DEVICE constexpr unsigned stored_exponent(typename Traits<Element>::Word largest) {
  return largest == 0 ? 0u : static_cast<unsigned>(largest >> Traits<Element>::kMantissaBits) + 1;
}

/// Whether that field belongs to a NaN or an infinity.
template <typename Element>
MPRESS_HOST_DEVICE constexpr bool not_finite(unsigned exponent) {
  return exponent >= 1u << Traits<Element>::kExponentBits;
}

/// trunc(x * 2^(precision - 2 - emax)) of the finite element with these bits, by shifts: so it
/// is exact also where that power of two is no number, and independent of the FPU's mode.
template <typename Element>
MPRESS_HOST_DEVICE constexpr typename Traits<Element>::Word to_fixed(
    typename Traits<Element>::Word bits, unsigned exponent) {
  using T = Traits<Element>;
  using Word = typename T::Word;
  constexpr Word hidden = Word{1} << T::kMantissaBits;
  constexpr Word sign = Word{1} << (T::kPrecision - 1);
  const Word magnitude = bits & ~sign;
  const auto field = static_cast<unsigned>(magnitude >> T::kMantissaBits);
  const Word significand = field != 0 ? (magnitude & (hidden - 1)) | hidden : magnitude;
  const unsigned shift = exponent - (field != 0 ? field : 1);
  const Word fixed = shift < unsigned{T::kPrecision}
                         ? (significand << (T::kPrecision - 2 - T::kMantissaBits)) >> shift
                         : 0;
  return (bits & sign) != 0 ? Word{0} - fixed : fixed;
}

/// 2^k for a k that the type's normal numbers hold.
template <typename Element>
MPRESS_HOST_DEVICE constexpr Element power_of_two(int k) {
  using T = Traits<Element>;
  using Word = typename T::Word;
  constexpr int bias = (1 << (T::kExponentBits - 1)) - 1;
  return std::bit_cast<Element>(static_cast<Word>(k + bias) << T::kMantissaBits);
}

/// The two factors whose product is libzfp's 2^(emax - (precision - 2)), which alone may be
/// subnormal or zero. An integer times the first is exact, so only the second rounds.
template <typename Element>
struct Scale {
  Element first;
  Element second;

  MPRESS_HOST_DEVICE explicit constexpr Scale(unsigned exponent) {
    using T = Traits<Element>;
    constexpr int bias = (1 << (T::kExponentBits - 1)) - 1;
    const int k = static_cast<int>(exponent) - bias - (T::kPrecision - 2);
    first = power_of_two<Element>(k >> 1);
    second = power_of_two<Element>(k - (k >> 1));
  }
};

/// The lowest bit plane that is coded (libzfp: precision()). Not 0 only for f64 blocks near and
/// in the subnormal range.
template <typename Element>
MPRESS_HOST_DEVICE constexpr unsigned lowest_plane(unsigned exponent) {
  if constexpr (sizeof(Element) == 4) return 0;
  const unsigned planes = exponent + 55;  // emax + 1074 + 4, and emax = exponent - 1023
  return planes < 64 ? 64 - planes : 0;
}

// ---- Decorrelation --------------------------------------------------------------------------

template <typename Integer>
MPRESS_HOST_DEVICE constexpr auto half(Integer x) {
  using Signed = std::make_signed_t<Integer>;
  return static_cast<Integer>(static_cast<Signed>(x) >> 1);
}

/// libzfp's fwd_lift(), in wrapping arithmetic.
template <typename Word>
MPRESS_HOST_DEVICE constexpr void lift(Word (&v)[4]) {
  Word x = v[0], y = v[1], z = v[2], w = v[3];
  x = half<Word>(x + w), w -= x;
  z = half<Word>(z + y), y -= z;
  x = half<Word>(x + z), z -= x;
  w = half<Word>(w + y), y -= w;
  w += half(y), y -= half(w);
  v[0] = x, v[1] = y, v[2] = z, v[3] = w;
}

/// libzfp's inv_lift(), likewise.
template <typename Word>
MPRESS_HOST_DEVICE constexpr void unlift(Word (&v)[4]) {
  Word x = v[0], y = v[1], z = v[2], w = v[3];
  y += half(w), w -= half(y);
  y += w, w += w - y;
  z += x, x += x - z;
  y += z, z += z - y;
  w += x, x += x - w;
  v[0] = x, v[1] = y, v[2] = z, v[3] = w;
}

/// 0xaa...a: conversion to and from negabinary.
template <typename Word>
inline constexpr Word kNegabinary = std::numeric_limits<Word>::max() / 3 * 2;

// ---- Bit planes -----------------------------------------------------------------------------

/// The indices 0..63 whose bit `low` is set and whose bit `high` is not, as a mask.
MPRESS_HOST_DEVICE constexpr std::uint64_t index_mask(int high, int low) {
  std::uint64_t mask = 0;
  for (int i = 0; i < 64; ++i) {
    if ((i >> low & 1) != 0 && (i >> high & 1) == 0) mask |= std::uint64_t{1} << i;
  }
  return mask;
}

/// Exchanges the bits High and Low of the index of each bit of `v`.
template <int High, int Low>
MPRESS_HOST_DEVICE constexpr std::uint64_t swap_index_bits(std::uint64_t v) {
  constexpr std::uint64_t mask = index_mask(High, Low);
  constexpr int distance = (1 << High) - (1 << Low);
  const std::uint64_t t = ((v >> distance) ^ v) & mask;
  return v ^ t ^ (t << distance);
}

MPRESS_HOST_DEVICE constexpr std::uint64_t reverse_nibbles(std::uint64_t v) {
  v = (v & 0x0F0F0F0F0F0F0F0Full) << 4 | (v >> 4 & 0x0F0F0F0F0F0F0F0Full);
  v = (v & 0x00FF00FF00FF00FFull) << 8 | (v >> 8 & 0x00FF00FF00FF00FFull);
  v = (v & 0x0000FFFF0000FFFFull) << 16 | (v >> 16 & 0x0000FFFF0000FFFFull);
  return v << 32 | v >> 32;
}

/// Four 16-bit slices of coefficients, element i at bit 16 * i, become 16 planes: nibble s (the
/// lowest is 0) holds the planes' bit 15 - s.
MPRESS_HOST_DEVICE constexpr std::uint64_t slices_to_planes(std::uint64_t v) {
  v = swap_index_bits<4, 0>(swap_index_bits<5, 1>(v));
  v = swap_index_bits<4, 2>(swap_index_bits<5, 3>(v));
  return reverse_nibbles(v);
}

MPRESS_HOST_DEVICE constexpr std::uint64_t planes_to_slices(std::uint64_t v) {
  v = reverse_nibbles(v);
  v = swap_index_bits<4, 2>(swap_index_bits<5, 3>(v));
  return swap_index_bits<4, 0>(swap_index_bits<5, 1>(v));
}

/// One plane as slices: bit i of `x` at bit 16 * i + 15.
MPRESS_HOST_DEVICE constexpr std::uint64_t plane_to_slices(unsigned x) {
  // Bit i of x meets factor bit 15 * j + 15 at 16 * i + 15 where j = i, and elsewhere otherwise.
  return x * 0x1000200040008000ull & 0x8000800080008000ull;
}

/// The bits of a block while it is built or read: Words * 64 of them, zeros beyond. With one
/// word, positions may run past it: what is put there vanishes and zeros are read.
template <int Words>
struct BlockBits {
  std::uint64_t word[Words + 2] = {};  // a step may overshoot the budget by up to 64 bits

  MPRESS_HOST_DEVICE constexpr void put(unsigned at, std::uint64_t value) {
    word[at / 64] |= value << at % 64;
    word[at / 64 + 1] |= value >> 1 >> (63 - at % 64);
  }
  MPRESS_HOST_DEVICE constexpr std::uint64_t get(unsigned at) const {
    return word[at / 64] >> at % 64 | word[at / 64 + 1] << 1 << (63 - at % 64);
  }
};

template <>
struct BlockBits<1> {
  std::uint64_t word[1] = {};

  MPRESS_HOST_DEVICE constexpr void put(unsigned at, std::uint64_t value) {
    if (at < 64) word[0] |= value << at;
  }
  MPRESS_HOST_DEVICE constexpr std::uint64_t get(unsigned at) const {
    return at < 64 ? word[0] >> at : 0;
  }
};

/// Codes the coefficients `u` (negabinary) behind the header at bit `at`, up to about `budget`;
/// the caller cuts at the budget.
template <typename Element, int Words>
MPRESS_HOST_DEVICE constexpr void encode_planes(const typename Traits<Element>::Word (&u)[4],
                                                unsigned at, unsigned budget, const Tables& tables,
                                                BlockBits<Words>& bits) {
  constexpr unsigned precision = Traits<Element>::kPrecision;
  const auto any = u[0] | u[1] | u[2] | u[3];
  if (any == 0) return;
  // Planes before the first that is not empty: a negative group test each.
  const auto lead = static_cast<unsigned>(std::countl_zero(any));
  at += lead;
  unsigned n = 0;
  for (unsigned slice = 0; slice < precision / 16 && at < budget; ++slice) {
    const unsigned shift = precision - 16 * (slice + 1);
    std::uint64_t planes = 0;
    for (int i = 0; i < 4; ++i) {
      planes |= static_cast<std::uint64_t>((u[i] << lead) >> shift & 0xFFFF) << 16 * i;
    }
    planes = slices_to_planes(planes);
    unsigned left = 64;
    for (; n < kBlock && left != 0 && at < budget; left -= 4) {
      const unsigned step = tables.code[(planes & 15) * 4 + n];
      planes >>= 4;
      bits.put(at, step >> 2 & 127);
      at += step >> 13;
      n = (step & 3) == 0 ? kBlock : step & 3;
    }
    if (n == kBlock && at < budget) {  // from here on planes are verbatim
      bits.put(at, planes);
      at += left;
    }
  }
}

/// The inverse; the bits beyond `budget` are zeros.
template <typename Element, int Words>
MPRESS_HOST_DEVICE constexpr void decode_planes(const BlockBits<Words>& bits, unsigned at,
                                                unsigned budget, const Tables& tables,
                                                typename Traits<Element>::Word (&u)[4]) {
  using Word = typename Traits<Element>::Word;
  constexpr unsigned precision = Traits<Element>::kPrecision;
  for (Word& c : u) c = 0;
  unsigned lead = 0;
  while (bits.get(at) == 0) {
    if (at + 64 >= budget) return;
    at += 64, lead += 64;
  }
  const auto zeros = static_cast<unsigned>(std::countr_zero(bits.get(at)));
  at += zeros + 1, lead += zeros;
  if (lead >= precision) return;

  unsigned n = 0;
  for (unsigned slice = 0; slice < precision / 16 && (n == 0 || at < budget); ++slice) {
    std::uint64_t slices = 0;
    unsigned filled = 0;
    // The first plane counts even if the budget ends with its group test.
    for (; n < kBlock && filled != 16 && (n == 0 || at < budget); ++filled) {
      std::uint64_t window = bits.get(at);
      unsigned x = 0;
      if (n == 0) {
        x = tables.first[window & 7];
        const unsigned length = x >> 4 & 7;
        n = x >> 8 & 7;
        x &= 15;
        at += length, window >>= length;
      } else {
        x = static_cast<unsigned>(window) & ((1u << n) - 1);
        at += n, window >>= n;
      }
      const unsigned mask = n < kBlock ? 31u >> 2 * (n - 1) : 0;
      const unsigned step = tables.step[mask + 1 + (window & mask)];
      x |= step & 15;
      at += step >> 4 & 7;
      n = step >> 8 & 7;
      // A budget that ends inside a scan puts the one where the scan stood, while the zeros read
      // beyond it took the scan to the last element.
      if (at > budget) x = (x & 7) | (x & 8) >> (at - budget);
      slices |= plane_to_slices(x) >> filled;
    }
    if (n == kBlock && at < budget && filled != 16) {
      slices |= planes_to_slices(bits.get(at) << 4 * filled);
      at += 64 - 4 * filled;
    }
    const unsigned shift = precision - 16 * (slice + 1);
    for (int i = 0; i < 4; ++i) {
      u[i] |= static_cast<Word>(slices >> 16 * i & 0xFFFF) << shift >> lead;
    }
  }
}

// ---- A block --------------------------------------------------------------------------------

/// Encodes a block given as bit patterns into `budget` bits. A block that is not finite is coded
/// as zeros; returns whether it was.
template <typename Element, int Words>
MPRESS_HOST_DEVICE constexpr bool encode_block(const typename Traits<Element>::Word (&x)[4],
                                               unsigned budget, const Tables& tables,
                                               BlockBits<Words>& bits) {
  using T = Traits<Element>;
  using Word = typename T::Word;
  constexpr Word magnitude = static_cast<Word>(~Word{0}) >> 1;
  Word largest = 0;
  for (Word v : x) largest = (v & magnitude) > largest ? v & magnitude : largest;
  const unsigned exponent = stored_exponent<Element>(largest);
  if (exponent == 0) return false;
  if (not_finite<Element>(exponent)) return true;
  Word u[4];
  for (int i = 0; i < 4; ++i) u[i] = to_fixed<Element>(x[i], exponent);
  lift(u);
  const Word kept = static_cast<Word>(~Word{0}) << lowest_plane<Element>(exponent);
  for (Word& v : u) v = ((v + kNegabinary<Word>)^kNegabinary<Word>)&kept;
  bits.put(0, exponent << 1 | 1);
  encode_planes<Element>(u, T::kHeaderBits, budget, tables, bits);
  return false;
}

/// The inverse. Any bits give some elements.
template <typename Element, int Words>
MPRESS_HOST_DEVICE constexpr void decode_block(const BlockBits<Words>& bits, unsigned budget,
                                               const Tables& tables, Element (&x)[4]) {
  using T = Traits<Element>;
  using Word = typename T::Word;
  if ((bits.get(0) & 1) == 0) {
    for (Element& v : x) v = 0;
    return;
  }
  const auto exponent = static_cast<unsigned>(bits.get(0) >> 1) & ((1u << T::kExponentBits) - 1);
  Word u[4];
  decode_planes<Element>(bits, T::kHeaderBits, budget, tables, u);
  const Word kept = static_cast<Word>(~Word{0}) << lowest_plane<Element>(exponent);
  for (Word& v : u) v = ((v & kept) ^ kNegabinary<Word>)-kNegabinary<Word>;
  unlift(u);
  const Scale<Element> scale(exponent);
  for (int i = 0; i < 4; ++i) {
    const auto integer = static_cast<typename T::Integer>(u[i]);
    x[i] = static_cast<Element>(integer) * scale.first * scale.second;
  }
}

}  // namespace mpress::codec::zfp
