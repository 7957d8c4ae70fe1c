// mpc: the lossless codec, exact for every bit pattern. The format, shared by all twins, and the
// entry points. docs/codecs.md describes it in prose.
//
//   payload   = Header | directory: one u16 a unit, its size in 32-bit words | padding to a word
//               | units. With the raw flag: Header | elements.
//   unit      = 8 KiB of elements, independent of all others. Size 0: every element is +0.
//               Size of the elements themselves: their copy. Else:
//               u32 unit word | seed (orders 1 and 2: the first element's ordered integer)
//               | one byte a group | width tables | blocks | zeros up to a whole word.
//               A unit of one value ends after the seed.
//   group     = 128 elements = 16 blocks, sharing the largest width and the kind of width table
//   block     = 8 elements, stored as its `width` low bit planes, one byte each, lowest first
//
// All numbers are little-endian.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/checksum.hpp"
#include "codec/combine.hpp"
#include "codec/element.hpp"
#include "codec/status.hpp"

// Always inlined, so that files compiled for different instruction sets share no function body.
#define MPRESS_MPC_INLINE MPRESS_HOST_DEVICE __attribute__((always_inline)) constexpr

namespace mpress::codec::mpc {

// ---- Format ---------------------------------------------------------------------------------

inline constexpr std::uint8_t kVersion = 1;
inline constexpr std::uint8_t kFlagRaw = 1;
inline constexpr unsigned kMaxDim = 32;

inline constexpr std::size_t kUnitBytes = 8192;
inline constexpr unsigned kBlock = 8;                      // elements
inline constexpr unsigned kGroupBlocks = 16;               // blocks
inline constexpr unsigned kGroup = kBlock * kGroupBlocks;  // elements
inline constexpr unsigned kOrders = 3;

/// The payload starts with this. The checksum is that of the whole payload with `checksum` = 0.
struct Header {
  std::uint8_t version;
  std::uint8_t flags;
  std::uint8_t dim;   // 1 where the raw flag is set
  std::uint8_t type;  // ElementType
  std::uint32_t checksum;
  std::uint64_t count;
};
static_assert(sizeof(Header) == 16);
inline constexpr std::size_t kChecksumOffset = 4;

/// Word of an element: how floats of one width are taken apart.
template <class Word>
struct Layout;

template <>
struct Layout<std::uint32_t> {
  using Signed = std::int32_t;
  static constexpr unsigned bits = 32;
  static constexpr unsigned mantissa_bits = 23;
  static constexpr std::uint32_t sign = 0x80000000u;
  static constexpr unsigned max_exponent = 0xFF;
};

template <>
struct Layout<std::uint64_t> {
  using Signed = std::int64_t;
  static constexpr unsigned bits = 64;
  static constexpr unsigned mantissa_bits = 52;
  static constexpr std::uint64_t sign = 0x8000000000000000u;
  static constexpr unsigned max_exponent = 0x7FF;
};

template <class Word>
inline constexpr unsigned kUnit = kUnitBytes / sizeof(Word);  // elements
template <class Word>
inline constexpr unsigned kUnitGroups = kUnit<Word> / kGroup;
template <class Word>
inline constexpr unsigned kUnitBlocks = kUnit<Word> / kBlock;

/// What one unit's elements are measured against. `order` 0: their distance below the largest
/// exponent present. 1, 2: first and second differences of their ordered integers.
struct UnitWord {
  unsigned order;
  unsigned min_exponent;  // of the elements that are not zero; 0 where there are none
  unsigned max_exponent;
  unsigned shift;  // low mantissa bits that are 0 in every element, as in rounded or widened data
};

MPRESS_MPC_INLINE std::uint32_t pack_unit_word(UnitWord u) {
  return u.order | u.min_exponent << 2 | u.max_exponent << 13 | u.shift << 24;
}

MPRESS_MPC_INLINE UnitWord unpack_unit_word(std::uint32_t word) {
  return {word & 3, (word >> 2) & 0x7FF, (word >> 13) & 0x7FF, word >> 24};
}

template <class Word>
MPRESS_MPC_INLINE bool valid_unit_word(UnitWord u) {
  return u.order < kOrders && u.min_exponent <= Layout<Word>::max_exponent &&
         u.max_exponent <= Layout<Word>::max_exponent && u.shift <= Layout<Word>::mantissa_bits;
}

/// The unit word in numbers of shifted magnitudes (the bits but the sign, right by `shift`).
template <class Word>
struct Scale {
  Word gap;      // no element has a magnitude in 1..gap, and ordered integers leave them out: a
                 // field that crosses zero would jump over all the exponents that are not there
  Word ceiling;  // the largest magnitude with the largest exponent: order 0 counts down from it
  unsigned shift;
};

template <class Word>
MPRESS_MPC_INLINE Scale<Word> scale_of(UnitWord u) {
  const unsigned mantissa = Layout<Word>::mantissa_bits - u.shift;
  return {u.min_exponent == 0 ? Word{0} : (Word{u.min_exponent} << mantissa) - 1,
          ((Word{u.max_exponent} + 1) << mantissa) - 1, u.shift};
}

/// Float bits to an integer that grows with the float; -0 is below +0.
template <class Word>
MPRESS_MPC_INLINE Word to_ordered(Word bits, Scale<Word> scale) {
  const Word magnitude = (bits & ~Layout<Word>::sign) >> scale.shift;
  const Word above = magnitude > scale.gap ? magnitude - scale.gap : 0;
  return bits & Layout<Word>::sign ? ~above : above;
}

template <class Word>
MPRESS_MPC_INLINE Word from_ordered(Word ordered, Scale<Word> scale) {
  const Word sign = ordered & Layout<Word>::sign;
  const Word above = sign ? ~ordered : ordered;
  return ((above == 0 ? 0 : above + scale.gap) << scale.shift) | sign;
}

/// Order 0: the distance below the ceiling, with the sign in the lowest bit.
template <class Word>
MPRESS_MPC_INLINE Word to_distance(Word bits, Scale<Word> scale) {
  const Word magnitude = (bits & ~Layout<Word>::sign) >> scale.shift;
  return ((scale.ceiling - magnitude) << 1) | (bits >> (Layout<Word>::bits - 1));
}

template <class Word>
MPRESS_MPC_INLINE Word from_distance(Word distance, Scale<Word> scale) {
  const Word magnitude = (scale.ceiling - (distance >> 1)) << scale.shift;
  return (magnitude & ~Layout<Word>::sign) | (distance << (Layout<Word>::bits - 1));
}

/// Small numbers of either sign to small unsigned ones.
template <class Word>
MPRESS_MPC_INLINE Word zigzag(Word difference) {
  return (difference << 1) ^ (difference & Layout<Word>::sign ? ~Word{0} : Word{0});
}

template <class Word>
MPRESS_MPC_INLINE Word unzigzag(Word residual) {
  return (residual >> 1) ^ (Word{0} - (residual & 1));
}

/// A group's byte: low 6 bits its largest width (63 stands for 64; 63 itself is stored as 64),
/// high 2 bits the kind of its width table. Blocks are `d` planes narrower than the group:
/// kind 0 has d = 0 throughout and no table; the others store d in 2, 3 or 4 bits, as that many
/// u16, each the bits of one weight of the 16 blocks. The largest d of kind 3 means width 0.
MPRESS_MPC_INLINE unsigned table_bits(unsigned kind) { return kind == 0 ? 0 : kind + 1; }
MPRESS_MPC_INLINE unsigned table_limit(unsigned kind) { return (1u << table_bits(kind)) - 1; }
MPRESS_MPC_INLINE unsigned table_bytes(unsigned kind) { return 2 * table_bits(kind); }

MPRESS_MPC_INLINE unsigned width_to_code(unsigned width) { return width >= 63 ? 63 : width; }
MPRESS_MPC_INLINE unsigned code_to_width(unsigned code) { return code == 63 ? 64 : code; }

/// The table entry of a block of `width` planes in a group of `largest`.
MPRESS_MPC_INLINE unsigned table_entry(unsigned kind, unsigned largest, unsigned width) {
  const unsigned limit = table_limit(kind);
  if (kind == 3 && width == 0) return limit;
  const unsigned most = kind == 3 ? limit - 1 : limit;
  return largest - width < most ? largest - width : most;
}

/// The planes that a block with this table entry stores.
MPRESS_MPC_INLINE unsigned table_width(unsigned kind, unsigned largest, unsigned entry) {
  return (kind == 3 && entry == 15) || entry > largest ? 0 : largest - entry;
}

/// Transposes 8 x 8 bits, byte i bit j to byte j bit i (Hacker's Delight, 7-3): byte j of 8
/// elements to their planes 8j..8j+7, and back.
MPRESS_MPC_INLINE std::uint64_t transpose_bits(std::uint64_t x) {
  std::uint64_t t = (x ^ (x >> 7)) & 0x00AA00AA00AA00AAu;
  x ^= t ^ (t << 7);
  t = (x ^ (x >> 14)) & 0x0000CCCC0000CCCCu;
  x ^= t ^ (t << 14);
  t = (x ^ (x >> 28)) & 0x00000000F0F0F0F0u;
  return x ^ t ^ (t << 28);
}

/// The bits below the lowest one that is set, `most` where there are more.
template <class Word>
MPRESS_MPC_INLINE unsigned low_zeros(Word word, unsigned most) {
  if (word == 0) return most;
#if defined(__CUDA_ARCH__)
  const auto zeros = static_cast<unsigned>(__ffsll(static_cast<long long>(word)) - 1);
#else
  const auto zeros = static_cast<unsigned>(__builtin_ctzll(word));
#endif
  return zeros < most ? zeros : most;
}

MPRESS_MPC_INLINE std::size_t unit_count(std::size_t count, std::size_t element_bytes) {
  const std::size_t unit = kUnitBytes / element_bytes;
  return count / unit + (count % unit != 0);
}

MPRESS_MPC_INLINE std::size_t directory_bytes(std::size_t units) { return (units + 1) / 2 * 4; }

/// choose_dim() judges each of these distances on runs of elements spread evenly over the message,
/// each behind as many as the largest distance; a run of one value says nothing. Distances that are
/// worse than 1 on a quarter of the runs are dropped. One above 1 must save a quarter of a bit an
/// element: it costs the encoder a pass.
namespace choice {
inline constexpr unsigned candidates = 14;
inline constexpr unsigned run = 8 * kMaxDim;
inline constexpr unsigned span = kMaxDim + run;
inline constexpr unsigned phases = 4;
inline constexpr unsigned most_runs = 16;

/// 1 to 10, 12, 16, 24, 32.
MPRESS_MPC_INLINE unsigned dim(unsigned candidate) {
  if (candidate < 10) return candidate + 1;
  return candidate < 12 ? 4 * candidate - 28 : 8 * candidate - 72;
}

MPRESS_MPC_INLINE unsigned runs(std::size_t count) {
  const std::size_t runs = count / 8192;
  return runs < 1 ? 1 : runs > most_runs ? most_runs : static_cast<unsigned>(runs);
}

/// The first element of run `r`: in the middle of its part, since the ends of a message are often
/// a field's quiet border.
MPRESS_MPC_INLINE std::size_t start(std::size_t count, unsigned r) {
  const std::size_t part = count / runs(count);
  return r * part + (part - span) / 2;
}

/// Planes that a distance above 1 must save.
MPRESS_MPC_INLINE unsigned margin(std::size_t count) { return runs(count) * (run / kBlock) / 4; }
}  // namespace choice

// ---- Entry points ---------------------------------------------------------------------------

/// The largest payload: the elements and the header.
std::size_t max_bytes(ElementType type, std::size_t count);

/// The distance (1..32) at which `count` elements look most alike: of the strides that structs
/// and vectors have, judged on samples spread over the message. Deterministic.
unsigned choose_dim(ElementType type, const void* in, std::size_t count);

/// Encodes `count` elements, interleaved `dim` at a time (1..32), into `out`, which has room for
/// max_bytes(). Returns the payload's size.
std::size_t encode(ElementType type, const void* in, std::size_t count, unsigned dim, void* out);

/// Decodes exactly `count` elements, or combines them with what is there. The payload is untrusted,
/// see codec.hpp.
Status decode(ElementType type, const void* payload, std::size_t bytes, void* out,
              std::size_t count, Combine how = Combine::replace);

}  // namespace mpress::codec::mpc
