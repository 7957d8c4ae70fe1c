// Decoding one unit, for the instruction set MPRESS_ISA: parse, unpack, predict, scale.
#pragma once

#include "codec/szp/unit.hpp"

namespace mpress::codec::szp::MPRESS_ISA {
namespace {

std::uint32_t get_word(const unsigned char* in) {
  std::uint32_t word;
  __builtin_memcpy(&word, in, 4);
  return word;
}

/// Reads a unit's sections one after the other; never beyond its end.
struct Reader {
  const unsigned char* next;
  std::size_t words;  ///< left

  /// The next `n` words, or null where fewer are left.
  const unsigned char* take(std::size_t n) {
    if (n > words) return nullptr;
    const unsigned char* at = next;
    next += 4 * n;
    words -= n;
    return at;
  }

  template <class V>
  bool read(V& value) {
    const unsigned char* at = take(sizeof(V) / 4);
    if (at != nullptr) __builtin_memcpy(&value, at, sizeof(V));
    return at != nullptr;
  }
};

/// How one block's residuals are stored; form no_code: there are none, the quantum repeats.
struct BlockCode {
  std::uint8_t width;
  std::uint8_t form;
};
constexpr std::uint8_t no_code = 0xFF;

/// Reads bitmap and codes into `codes` (max_blocks entries).
bool read_codes(Reader& reader, std::uint32_t head, std::uint32_t blocks, std::uint32_t widest,
                BlockCode* codes) {
  const std::uint32_t least = head & 63;
  const std::uint32_t used = (head >> forms_shift) & 255;
  const std::uint32_t bits = (head >> code_bits_shift) & 15;
  const std::uint32_t map_words = (blocks + 31) / 32;
  std::uint32_t map[max_blocks / 32] = {};
  std::uint32_t coded = 0;
  if ((head & has_bitmap) != 0) {
    const unsigned char* at = reader.take(map_words);
    if (at == nullptr) return false;
    for (std::uint32_t i = 0; i < map_words; ++i) {
      map[i] = get_word(at + 4 * i);
      coded += static_cast<std::uint32_t>(__builtin_popcount(map[i]));
    }
    if (blocks % 32 != 0 && map[map_words - 1] >> (blocks % 32) != 0) return false;
  } else if (used != 0) {
    for (std::uint32_t& word : map) word = ~0u;
    coded = blocks;
  }
  const auto form_count = static_cast<std::uint32_t>(__builtin_popcount(used));
  if ((form_count == 0) != (coded == 0) || bits > 9) return false;
  std::uint8_t form_of[forms] = {};
  for (std::uint32_t f = 0, rank = 0; f < forms; ++f) {
    if ((used >> f & 1) != 0) form_of[rank++] = static_cast<std::uint8_t>(f);
  }
  const std::size_t code_words = ceil_div(std::size_t{coded} * bits, 32);
  const unsigned char* at = reader.take(code_words);
  if (at == nullptr) return false;
  // Exact for codes below 512: code * form_count never exceeds 16 bits.
  const std::uint32_t reciprocal = form_count == 0 ? 0 : 65536 / form_count + 1;
  std::uint64_t window = 0;
  std::uint32_t filled = 0;
  std::uint32_t worst = 0;
  for (std::uint32_t b = 0; b < blocks; ++b) {
    if ((map[b / 32] >> (b % 32) & 1) == 0) {
      codes[b] = {0, no_code};
      continue;
    }
    if (filled < bits) {
      window |= std::uint64_t{get_word(at)} << filled;
      at += 4;
      filled += 32;
    }
    const std::uint32_t code = static_cast<std::uint32_t>(window) & ((1u << bits) - 1);
    window >>= bits;
    filled -= bits;
    const std::uint32_t above = code * reciprocal >> 16;
    const std::uint32_t width = least + above;
    worst = width > worst ? width : worst;
    codes[b] = {static_cast<std::uint8_t>(width), form_of[code - above * form_count]};
  }
  return worst <= widest;
}

/// What prediction knows when a block begins: the last quantum and its first two differences.
template <class U>
struct History {
  U last = 0;
  U slope = 0;
  U bend = 0;
};

/// Quanta of one block from its residuals.
template <class U>
void restore_block(U* q, BlockCode code, U centre, History<U>& history) {
  const U shift = bias<U>(code.width, code.form);
  switch (form_order(code.form)) {
    case 1: integrate(q, shift, history.last); break;
    case 2:
      integrate(q, shift, history.slope);
      integrate(q, U{0}, history.last);
      break;
    case 3:
      integrate(q, shift, history.bend);
      integrate(q, U{0}, history.slope);
      integrate(q, U{0}, history.last);
      break;
    default:
      for (std::uint32_t i = 0; i < block_elements; ++i) q[i] += centre - shift;
      history.last = q[block_elements - 1];
  }
  const U* end = q + block_elements;
  history.slope = end[-1] - end[-2];
  history.bend = history.slope - (end[-2] - end[-3]);
}

/// Writes values from quanta, `n` of them.
template <class T, class U>
void scale_block(const U* q, T step, unsigned char* out, std::size_t n) {
  using Signed = typename Traits<T>::Quantum;
  alignas(64) T x[block_elements];
  for (std::uint32_t i = 0; i < block_elements; ++i) {
    if constexpr (sizeof(U) == 4) {
      x[i] = static_cast<T>(static_cast<std::int32_t>(q[i])) * step;
    } else {
      x[i] = static_cast<T>(static_cast<Signed>(q[i])) * step;
    }
  }
  if (n == block_elements) {
    __builtin_memcpy(out, x, sizeof x);
  } else {
    __builtin_memcpy(out, x, n * sizeof(T));
  }
}

/// Puts the exceptional elements back.
template <class T>
bool restore_exceptions(Reader& reader, const unsigned char* maps, std::uint32_t blocks,
                        unsigned char* out, std::size_t count) {
  const std::uint32_t map_words = (blocks + 31) / 32;
  const unsigned char* listed = maps + 4 * map_words;
  const unsigned char* fill = listed + 4 * map_words;
  std::uint32_t masked = 0;
  for (std::uint32_t i = 0; i < map_words; ++i) {
    const std::uint32_t partial = get_word(maps + 4 * i);
    masked += static_cast<std::uint32_t>(__builtin_popcount(partial));
    const std::uint32_t last = blocks % 32;
    if (i + 1 == map_words && last != 0 && (partial | get_word(listed + 4 * i)) >> last != 0) {
      return false;
    }
  }
  const unsigned char* masks = reader.take(masked);
  if (masks == nullptr) return false;
  for (std::uint32_t b = 0; b < blocks; ++b) {
    const bool in_part = (get_word(maps + b / 32 * 4) >> (b % 32) & 1) != 0;
    const bool in_list = (get_word(listed + b / 32 * 4) >> (b % 32) & 1) != 0;
    if (!in_part && !in_list) continue;
    std::uint32_t mask = ~0u;
    if (in_part) {
      mask = get_word(masks);
      masks += 4;
    }
    const unsigned char* values = fill;
    std::size_t stride = 0;
    if (in_part && in_list) {
      const auto n = static_cast<std::size_t>(__builtin_popcount(mask));
      values = reader.take(n * (sizeof(T) / 4));
      if (values == nullptr) return false;
      stride = sizeof(T);
    }
    for (; mask != 0; mask &= mask - 1, values += stride) {
      const std::size_t i = b * block_elements + static_cast<std::size_t>(__builtin_ctz(mask));
      if (i < count) __builtin_memcpy(out + i * sizeof(T), values, sizeof(T));
    }
  }
  return true;
}

/// Reads a unit of T up to its exceptions, whose bitmaps `maps` then points to (null: there are
/// none), and hands each block's quanta to `take`. Inlined: the reader stays in registers.
template <class T, class U, class Take>
[[gnu::always_inline]] inline bool read_blocks(std::uint32_t head, Reader& reader,
                                               std::uint32_t blocks, const unsigned char*& maps,
                                               Take take) {
  History<U> history;
  U centre = 0;
  if ((head & has_origin) != 0 && !reader.read(history.last)) return false;
  if ((head & has_centre) != 0 && !reader.read(centre)) return false;
  BlockCode codes[max_blocks];
  const std::uint32_t widest = sizeof(U) == 4 ? 32 : max_width;
  if (!read_codes(reader, head, blocks, widest, codes)) return false;
  maps = nullptr;
  if ((head & has_exceptions) != 0) {
    maps = reader.take(2 * ceil_div(blocks, 32) + sizeof(T) / 4);
    if (maps == nullptr) return false;
  }
  alignas(64) U q[block_elements];
  for (std::uint32_t b = 0; b < blocks; ++b) {
    if (codes[b].form == no_code) {
      for (U& value : q) value = history.last;
      history = {history.last};
    } else {
      const unsigned char* planes = reader.take(codes[b].width);
      if (planes == nullptr) return false;
      unpack_planes(planes, codes[b].width, q);
      restore_block(q, codes[b], centre, history);
    }
    take(q);
  }
  return true;
}

template <class T, class U>
bool decode_as(T step, std::uint32_t head, Reader reader, unsigned char* out, std::size_t count) {
  const auto blocks = static_cast<std::uint32_t>(ceil_div(count, block_elements));
  const unsigned char* maps;
  unsigned char* to = out;
  std::size_t left = count;
  const bool read = read_blocks<T, U>(head, reader, blocks, maps, [&](const U* q) {
    scale_block(q, step, to, left < block_elements ? left : block_elements);
    to += block_elements * sizeof(T);
    left -= block_elements;
  });
  if (!read) return false;
  if (maps != nullptr && !restore_exceptions<T>(reader, maps, blocks, out, count)) return false;
  return reader.words == 0;
}

}  // namespace

bool decode_unit(float step, const unsigned char* in, std::size_t words, unsigned char* out,
                 std::size_t count) {
  const std::uint32_t head = get_word(in);
  if ((head & ~known_head) != 0 || (head & is_wide) != 0) return false;
  return decode_as<float, std::uint32_t>(step, head, {in + 4, words - 1}, out, count);
}

bool decode_unit(double step, const unsigned char* in, std::size_t words, unsigned char* out,
                 std::size_t count) {
  const std::uint32_t head = get_word(in);
  if ((head & ~known_head) != 0) return false;
  const Reader reader{in + 4, words - 1};
  return (head & is_wide) != 0 ? decode_as<double, std::uint64_t>(step, head, reader, out, count)
                               : decode_as<double, std::uint32_t>(step, head, reader, out, count);
}

}  // namespace mpress::codec::szp::MPRESS_ISA
