// The fixed-rate codec `zfp`: libzfp's one-dimensional fixed-rate stream, then a trailer.
//
// A block is four consecutive elements and takes exactly `block_bits` bits of the stream. All
// of the format is in this file and in zfp_block.hpp, once, for every twin; docs/codecs.md
// describes it. Rules that come from libzfp 1.0.1 name the function that defines them there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/checksum.hpp"
#include "codec/combine.hpp"
#include "codec/element.hpp"
#include "codec/status.hpp"

namespace mpress::codec::zfp {

inline constexpr std::size_t kBlock = 4;

/// What differs between the element types.
template <typename Element>
struct Traits;

template <>
struct Traits<float> {
  using Word = std::uint32_t;
  using Integer = std::int32_t;
  static constexpr int kPrecision = 32;  // bit planes of a block
  static constexpr int kMantissaBits = 23;
  static constexpr int kExponentBits = 8;
  static constexpr int kHeaderBits = 9;  // "not zero", then the biased exponent
};

template <>
struct Traits<double> {
  using Word = std::uint64_t;
  using Integer = std::int64_t;
  static constexpr int kPrecision = 64;
  static constexpr int kMantissaBits = 52;
  static constexpr int kExponentBits = 11;
  static constexpr int kHeaderBits = 12;
};

/// Budgets that the stream allows: from the header alone to one bit a plane and element.
constexpr std::uint32_t min_block_bits(ElementType type) {
  return type == ElementType::f32 ? 9 : 12;
}
constexpr std::uint32_t max_block_bits(ElementType type) {
  return type == ElementType::f32 ? 128 : 256;
}

// ---- Bit planes -----------------------------------------------------------------------------
//
// libzfp's encode_ints() writes a plane in two parts. `n` counts the elements up to the last one
// that had a bit set in any earlier plane. The bits of those n elements come verbatim; the rest
// come as group tests ("any bit left?") and, after a positive one, zeros up to the next one,
// where the last element's one is implied. So a plane is one step of an automaton with states
// n = 0..4 whose input is the plane's four bits, and the tables below hold its steps.

/// The code of a plane with the bits `x` (bit i: element i) in the state `n` < 4:
///   bits 0..1   next state, 4 written as 0
///   bits 2..8   the code, first bit lowest
///   bits 13..15 its length
/// (n, x) = (0, 0) never occurs where leading empty planes are counted instead of coded; its
/// entry, 0, is a step that writes nothing.
MPRESS_HOST_DEVICE constexpr std::uint16_t plane_code(unsigned n, unsigned x) {
  if (n == 0 && x == 0) return 0;
  unsigned code = x & ((1u << n) - 1);
  unsigned length = n;
  x >>= n;
  while (n < kBlock) {
    const unsigned any = x != 0 ? 1 : 0;
    code |= any << length++;
    if (any == 0) break;
    for (; n < kBlock - 1; ++n) {
      const unsigned bit = x & 1;
      code |= bit << length++;
      if (bit != 0) break;
      x >>= 1;
    }
    x >>= 1;
    ++n;
  }
  return static_cast<std::uint16_t>((n & 3) | code << 2 | length << 13);
}

/// The inverse for the part after the verbatim bits: the state `n` in 1..4 and the next bits of
/// the stream as `window`.
///   bits 0..3   the plane's bits from element n on, at their places
///   bits 4..6   bits consumed
///   bits 8..10  next state
///   bits 11..15 mask of the next state's window: 31, 7, 1, 0 for 1..4
MPRESS_HOST_DEVICE constexpr std::uint16_t plane_step(unsigned n, unsigned window,
                                                      bool tested = false) {
  unsigned x = 0;
  unsigned length = 0;
  bool once = tested;
  while (n < kBlock) {
    if (!once && (window >> length++ & 1) == 0) break;
    for (; n < kBlock - 1; ++n) {
      if ((window >> length++ & 1) != 0) break;
    }
    x |= 1u << n++;
    if (once) break;
  }
  const unsigned mask = n < kBlock ? 31u >> 2 * (n - 1) : 0;
  return static_cast<std::uint16_t>(x | length << 4 | n << 8 | mask << 11);
}

/// The steps as tables.
struct Tables {
  /// plane_code(n, x) at x * 4 + n.
  std::uint16_t code[64] = {};
  /// plane_step(n, window) at mask + 1 + (window & mask), mask being that of the state: the
  /// windows of a state have one size, so its power of two tells the states apart.
  std::uint16_t step[64] = {};
  /// The scan that follows the first positive group test of a block (state 0), by three bits.
  std::uint16_t first[8] = {};

  constexpr Tables() {
    for (unsigned n = 0; n < 4; ++n) {
      for (unsigned x = 0; x < 16; ++x) code[x * 4 + n] = plane_code(n, x);
    }
    for (unsigned n = 1; n <= 4; ++n) {
      const unsigned mask = n < 4 ? 31u >> 2 * (n - 1) : 0;
      for (unsigned w = 0; w <= mask; ++w) step[mask + 1 + w] = plane_step(n, w);
    }
    for (unsigned w = 0; w < 8; ++w) first[w] = plane_step(0, w, true);
  }
};
inline constexpr Tables kTables;

// ---- Trailer --------------------------------------------------------------------------------
//
//   payload = stream, exceptions * (u64 block, 4 elements), footer
//   payload = elements as they are, zeros up to a multiple of 8 bytes, footer      (raw)
//
// All integers little-endian. The block numbers ascend.

struct Footer {
  std::uint64_t exceptions;  // 0 in a raw payload
  std::uint32_t form;
  std::uint32_t checksum;  // of everything before it, the footer's own fields included
};
static_assert(sizeof(Footer) == 16);

inline constexpr std::uint32_t kFormStream = 0x3153465A;  // "ZFS1"
inline constexpr std::uint32_t kFormRaw = 0x3152465A;     // "ZFR1"

constexpr std::size_t exception_bytes(ElementType type) { return 8 + kBlock * element_size(type); }

constexpr std::size_t block_count(std::size_t count) { return count / 4 + (count % 4 != 0); }

/// Bytes of libzfp's stream: whole 64-bit words.
constexpr std::size_t stream_bytes(ElementType, std::size_t count, std::uint32_t block_bits) {
  const std::size_t blocks = block_count(count);
  // blocks * block_bits overflows only where the elements would not fit in memory.
  return (blocks * block_bits + 63) / 64 * 8;
}

/// Bytes of a raw payload, without its footer.
constexpr std::size_t raw_bytes(ElementType type, std::size_t count) {
  return (count * element_size(type) + 7) / 8 * 8;
}

// ---- Entry points ---------------------------------------------------------------------------

/// The largest payload: max(stream, raw elements) and a footer.
constexpr std::size_t max_bytes(ElementType type, std::size_t count, std::uint32_t block_bits) {
  const std::size_t stream = stream_bytes(type, count, block_bits);
  const std::size_t raw = raw_bytes(type, count);
  return (stream > raw ? stream : raw) + sizeof(Footer);
}

/// Encodes `count` elements at `in` (any alignment) into `out`, which has room for max_bytes()
/// and does not overlap `in`. `block_bits` lies in [min_block_bits, max_block_bits]. Returns the
/// payload's size. Its first stream_bytes() are what libzfp writes, unless the payload is raw.
std::size_t encode(ElementType type, const void* in, std::size_t count, std::uint32_t block_bits,
                   void* out);

/// Decodes exactly `count` elements to `out` (any alignment), or combines them with what is there.
/// The payload is untrusted.
/// truncated: shorter than any payload of that many elements; unsupported: block_bits out of
/// range; corrupt: everything else that is wrong.
Status decode(ElementType type, const void* payload, std::size_t bytes, std::uint32_t block_bits,
              void* out, std::size_t count, Combine how = Combine::replace);

}  // namespace mpress::codec::zfp
