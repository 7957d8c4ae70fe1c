// One unit of mpc: decides order and widths, lays the parts out, reads them back. Written once
// over a Kernel, which does the work on whole groups with one instruction set:
//
//   using Word
//   Extent range(const Word* in, unsigned n)
//   void order(const Word* in, unsigned n, Scale<Word>, Word* ordered)
//   void measure(const Word* in, const Word* ordered, unsigned n, Scale<Word>,
//                std::uint8_t (*widths)[kUnitBlocks])   each order's planes of every block
//   GroupTable choose_table(std::uint8_t* widths, unsigned char* table)
//   unsigned read_table(unsigned kind, unsigned largest, const unsigned char* table,
//                       std::uint8_t* widths)           returns the sum of the group's widths
//   unsigned char* pack(unsigned order, const Word* in, const Word* ordered, unsigned n,
//                       Scale<Word>, const std::uint8_t* widths, unsigned char* out)
//   void unpack(unsigned order, const unsigned char* in, const std::uint8_t* widths, unsigned n,
//               Word seed, Scale<Word>, Word* out)
//
// n is a whole number of groups. ordered[-1] and ordered[-2] repeat ordered[0]. pack may write,
// and read_table and unpack may read, kSlack bytes beyond their part.
//
// Kernels live in the namespace of their instruction set, so every instantiation is distinct.
#pragma once

#include <cstring>

#include "codec/mpc/format.hpp"

namespace mpress::codec::mpc {

inline constexpr unsigned kSlack = 64;

/// Magnitudes of a unit: `least` is the smallest that is not zero, less 1 (all ones: none).
template <class Word>
struct Extent {
  Word least;
  Word largest;
  Word any;  // OR of all bit patterns
};

/// The unit word of elements with this extent, of order 0.
template <class Word>
MPRESS_MPC_INLINE UnitWord unit_word(Extent<Word> extent) {
  constexpr unsigned mantissa = Layout<Word>::mantissa_bits;
  UnitWord u{};
  if (extent.least != ~Word{0})
    u.min_exponent = static_cast<unsigned>((extent.least + 1) >> mantissa);
  u.max_exponent = static_cast<unsigned>(extent.largest >> mantissa);
  u.shift = low_zeros(extent.any, mantissa);
  return u;
}

/// How a group is stored: its byte, its table's size and the planes of its blocks, in bytes.
struct GroupTable {
  unsigned char field;
  unsigned size;
  unsigned planes;
};

/// Encoding a unit takes more than fits on small stacks.
template <class Word>
struct EncodingUnit {
  static constexpr unsigned ahead = 64 / sizeof(Word);

  alignas(64) Word ordered[ahead + kUnit<Word>];
  alignas(64) std::uint8_t widths[kOrders][kUnitBlocks<Word>];
};

/// The functions that mpc/host.cpp dispatches to; n <= kUnit elements. encode reads whole groups
/// and writes at most kUnitBytes + kSlack bytes; it returns the unit's size in words. decode
/// reads at most kSlack bytes beyond the unit, writes whole groups, and returns false where the
/// unit contradicts itself.
template <class Word>
struct UnitCodec {
  unsigned (*encode)(const Word* in, unsigned n, unsigned char* out, EncodingUnit<Word>& scratch);
  bool (*decode)(const unsigned char* in, unsigned words, unsigned n, Word* out);
};

template <class Kernel>
struct Unit {
  using Word = typename Kernel::Word;
  using Bytes = unsigned char;

  static unsigned encode(const Word* in, unsigned n, Bytes* out, EncodingUnit<Word>& scratch) {
    const unsigned groups = (n + kGroup - 1) / kGroup;
    const unsigned raw_words = n * (sizeof(Word) / 4);
    const Extent<Word> extent = Kernel::range(in, groups * kGroup);
    if (extent.any == 0) return 0;

    UnitWord unit = unit_word(extent);
    const Scale<Word> scale = scale_of<Word>(unit);

    Word* const ordered = scratch.ordered + scratch.ahead;
    const Word seed = to_ordered(in[0], scale);
    Kernel::order(in, groups * kGroup, scale, ordered);
    ordered[-1] = ordered[-2] = seed;

    Kernel::measure(in, ordered, groups * kGroup, scale, scratch.widths);
    unit.order = best_order(scratch.widths, groups * kGroupBlocks);

    Bytes fields[kUnitGroups<Word>];
    Bytes tables[kUnitGroups<Word> * table_bytes(3)];  // every kind writes table_bytes(3)
    std::uint8_t* const chosen = scratch.widths[unit.order];
    unsigned table_size = 0;
    unsigned planes = 0;
    for (unsigned g = 0; g < groups; ++g) {
      const GroupTable t = Kernel::choose_table(chosen + g * kGroupBlocks, tables + table_size);
      fields[g] = t.field;
      table_size += t.size;
      planes += t.planes;
    }
    const unsigned seed_size = unit.order == 0 ? 0 : sizeof(Word);
    const bool constant = planes == 0 && seed_size != 0;
    const unsigned size = 4 + seed_size + (constant ? 0 : groups + table_size + planes);
    const unsigned words = (size + 3) / 4;
    if (words >= raw_words) {
      std::memcpy(out, in, n * sizeof(Word));
      return raw_words;
    }

    const std::uint32_t word = pack_unit_word(unit);
    std::memcpy(out, &word, 4);
    std::memcpy(out + 4, &seed, seed_size);
    if (constant) return words;
    Bytes* p = out + 4 + seed_size;
    std::memcpy(p, fields, groups);
    std::memcpy(p + groups, tables, table_size);
    p += groups + table_size;
    p = Kernel::pack(unit.order, in, ordered, groups * kGroup, scale, chosen, p);
    std::memset(p, 0, words * 4 - size);
    return words;
  }

  static bool decode(const Bytes* in, unsigned words, unsigned n, Word* out) {
    const unsigned groups = (n + kGroup - 1) / kGroup;
    const unsigned raw_words = n * (sizeof(Word) / 4);
    if (words == 0) {
      std::memset(out, 0, n * sizeof(Word));
      return true;
    }
    if (words >= raw_words) {
      if (words == raw_words) std::memcpy(out, in, n * sizeof(Word));
      return words == raw_words;
    }

    const unsigned bytes = words * 4;
    std::uint32_t word;
    std::memcpy(&word, in, 4);
    const UnitWord unit = unpack_unit_word(word);
    if (!valid_unit_word<Word>(unit)) return false;
    const Scale<Word> scale = scale_of<Word>(unit);
    const unsigned seed_size = unit.order == 0 ? 0 : sizeof(Word);
    if (4 + seed_size > bytes) return false;
    Word seed = 0;
    std::memcpy(&seed, in + 4, seed_size);
    if (4 + seed_size == bytes) {
      for (unsigned i = 0; i < n; ++i) out[i] = from_ordered(seed, scale);
      return seed_size != 0;
    }
    unsigned used = 4 + seed_size + groups;
    if (used > bytes) return false;

    const Bytes* const fields = in + 4 + seed_size;
    alignas(64) std::uint8_t widths[kUnitBlocks<Word>];
    unsigned planes = 0;
    for (unsigned g = 0; g < groups; ++g) {
      const unsigned kind = fields[g] >> 6;
      const unsigned largest = code_to_width(fields[g] & 63);
      if (largest > Layout<Word>::bits || used + table_bytes(kind) > bytes) return false;
      planes += Kernel::read_table(kind, largest, in + used, widths + g * kGroupBlocks);
      used += table_bytes(kind);
    }
    if ((used + planes + 3) / 4 != words) return false;

    Kernel::unpack(unit.order, in + used, widths, groups * kGroup, seed, scale, out);
    return true;
  }

 private:
  // The order with the fewest planes; a plane of a block is a byte.
  static unsigned best_order(const std::uint8_t (*widths)[kUnitBlocks<Word>], unsigned blocks) {
    unsigned best = 0;
    unsigned best_size = ~0u;
    for (unsigned order = 0; order < kOrders; ++order) {
      unsigned size = order == 0 ? 0 : sizeof(Word);
      for (unsigned b = 0; b < blocks; ++b) size += widths[order][b];
      if (size < best_size) {
        best = order;
        best_size = size;
      }
    }
    return best;
  }
};

}  // namespace mpress::codec::mpc
