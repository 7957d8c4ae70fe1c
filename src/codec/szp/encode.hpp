// Encoding one unit, for the instruction set MPRESS_ISA: quantise, analyse, plan, pack.
#pragma once

#include <new>

#include "codec/szp/unit.hpp"

namespace mpress::codec::szp::MPRESS_ISA {
namespace {

void put_word(unsigned char*& out, std::uint32_t word) {
  __builtin_memcpy(out, &word, 4);
  out += 4;
}

template <class V>
void put_value(unsigned char*& out, V value) {
  __builtin_memcpy(out, &value, sizeof value);
  out += sizeof value;
}

float magnitude(float x) { return __builtin_fabsf(x); }
double magnitude(double x) { return __builtin_fabs(x); }

template <class I>
std::uint32_t bit_count(I x) {
  return x == 0
             ? 0
             : 64 - static_cast<std::uint32_t>(__builtin_clzll(static_cast<unsigned long long>(x)));
}

/// Least and greatest residual of a block under each order.
template <class I>
struct Extent {
  I lo[4];
  I hi[4];
};

/// Residual width in two's complement (form even), or with the range flipped.
template <class I>
std::uint32_t residual_width(I lo, I hi, std::uint32_t flip) {
  if (lo == 0 && hi == 0) return 0;
  const I below = flip ? -lo : ~lo;
  const I above = flip ? hi - 1 : hi;
  return bit_count(below > above ? below : above) + 1;
}

/// A unit between quantisation and packing. Quanta have 32 bits, or 64 where the unit is wide.
template <class T, class I>
struct EncodingUnit {
  using Bits = typename Traits<T>::Bits;
  static constexpr std::uint32_t history = 16;

  alignas(64) I storage[history + unit_bytes / sizeof(T)];
  Extent<I> extents[max_blocks];
  std::uint32_t exceptions[max_blocks];  ///< per block, a bit an exceptional element
  std::uint8_t widths[max_blocks];
  std::uint8_t block_forms[max_blocks];  ///< no_form: no residuals
  static constexpr std::uint8_t no_form = 0xFF;

  std::uint32_t blocks = 0;
  bool exceptional = false;
  I any = 0;  ///< or of all quanta
  I centre = 0;

  I* quanta() { return storage + history; }
};

/// Copies block `b` of `count` elements; past the end, the last element repeats.
template <class T>
void load_block(const unsigned char* in, std::size_t count, std::size_t b, T* x) {
  const std::size_t first = b * block_elements;
  in += first * sizeof(T);
  if (count - first >= block_elements) {
    __builtin_memcpy(x, in, block_elements * sizeof(T));
    return;
  }
  const std::size_t n = count - first;
  __builtin_memcpy(x, in, n * sizeof(T));
  for (std::size_t i = n; i < block_elements; ++i) x[i] = x[n - 1];
}

/// Quantises the unit. False where a quantum needs more than I.
template <class T, class I>
bool quantize_unit(EncodingUnit<T, I>& u, const Quantizer<T>& z, const unsigned char* in,
                   std::size_t count) {
  using Bits = typename Traits<T>::Bits;
  constexpr bool check_narrow = sizeof(I) < sizeof(T);
  constexpr Bits narrow = static_cast<Bits>(narrow_limit);
  const Bits magic_bits = __builtin_bit_cast(Bits, Traits<T>::magic);
  const T most = Traits<T>::max_quantum;
  alignas(64) T x[block_elements];
  I* q = u.quanta();
  Bits too_wide = 0;
  u.blocks = static_cast<std::uint32_t>(ceil_div(count, block_elements));
  for (std::uint32_t b = 0; b < u.blocks; ++b, q += block_elements) {
    load_block(in, count, b, x);
    Bits missed = 0;
    I any = 0;
    for (std::uint32_t i = 0; i < block_elements; ++i) {
      const T scaled = x[i] * z.inverse;
      const T shifted = scaled + Traits<T>::magic;
      const T error = x[i] - (shifted - Traits<T>::magic) * z.step;
      const Bits quantum = __builtin_bit_cast(Bits, shifted) - magic_bits;
      missed |= static_cast<Bits>(!(magnitude(error) < z.limit)) |
                static_cast<Bits>(!(magnitude(scaled) <= most));
      if (check_narrow) too_wide |= (quantum + narrow) >> 29;
      q[i] = static_cast<I>(quantum);
      any |= q[i];
    }
    u.exceptions[b] = 0;
    if (missed != 0) [[unlikely]] {
      I before = b == 0 ? I{0} : q[-1];
      if (check_narrow) too_wide = 0;
      any = 0;
      for (std::uint32_t i = 0; i < block_elements; ++i) {
        typename Traits<T>::Quantum quantum = before;
        if (!quantize(z, x[i], quantum)) u.exceptions[b] |= 1u << i;
        if (check_narrow) too_wide |= (static_cast<Bits>(quantum) + narrow) >> 29;
        before = q[i] = static_cast<I>(quantum);
        any |= before;
      }
      u.exceptional |= u.exceptions[b] != 0;
    }
    if (check_narrow && too_wide != 0) return false;
    u.any |= any;
  }
  return true;
}

/// Finds what each block's residuals span under the orders 0 to 2.
template <class T, class I>
void analyse_unit(EncodingUnit<T, I>& u) {
  I* q = u.quanta();
  q[-1] = q[-2] = q[-3] = q[0];
  I least = q[0];
  I greatest = q[0];
  for (std::uint32_t b = 0; b < u.blocks; ++b, q += block_elements) {
    I lo0 = q[0], hi0 = q[0], lo1 = 0, hi1 = 0, lo2 = 0, hi2 = 0;
    for (std::uint32_t i = 0; i < block_elements; ++i) {
      const I* p = q + i;
      const I slope = p[0] - p[-1];
      const I bend = slope - (p[-1] - p[-2]);
      lo0 = p[0] < lo0 ? p[0] : lo0;
      hi0 = p[0] > hi0 ? p[0] : hi0;
      lo1 = slope < lo1 ? slope : lo1;
      hi1 = slope > hi1 ? slope : hi1;
      lo2 = bend < lo2 ? bend : lo2;
      hi2 = bend > hi2 ? bend : hi2;
    }
    u.extents[b] = {{lo0, lo1, lo2, 0}, {hi0, hi1, hi2, 0}};
    least = lo0 < least ? lo0 : least;
    greatest = hi0 > greatest ? hi0 : greatest;
  }
  u.centre = least <= 0 && greatest >= 0 ? I{0} : least + (greatest - least) / 2;
}

/// The same for order 3.
template <class T, class I>
void analyse_order3(EncodingUnit<T, I>& u) {
  const I* q = u.quanta();
  for (std::uint32_t b = 0; b < u.blocks; ++b, q += block_elements) {
    I lo = 0, hi = 0;
    for (std::uint32_t i = 0; i < block_elements; ++i) {
      const I* p = q + i;
      const I residual = p[0] - p[-3] - 3 * (p[-1] - p[-2]);
      lo = residual < lo ? residual : lo;
      hi = residual > hi ? residual : hi;
    }
    u.extents[b].lo[3] = lo;
    u.extents[b].hi[3] = hi;
  }
}

/// The unit's sections, in words, and what its head says.
struct Plan {
  std::uint32_t head = 0;
  std::uint32_t least_width = 0;
  std::uint32_t form_count = 0;
  std::uint32_t code_bits = 0;
  std::uint32_t coded_blocks = 0;
  std::uint32_t partial[max_blocks / 32] = {};  ///< exception bitmaps
  std::uint32_t listed[max_blocks / 32] = {};
  std::uint32_t first_exception = 0;  ///< its index in the unit
  std::uint32_t words = 0;
};

/// Chooses each block's form by exact cost.
template <class T, class I>
void plan_residuals(EncodingUnit<T, I>& u, Mode mode, Plan& plan) {
  std::uint32_t least = max_width, most = 0, used = 0, planes = 0;
  for (std::uint32_t b = 0; b < u.blocks; ++b) {
    const Extent<I>& e = u.extents[b];
    u.block_forms[b] = u.no_form;
    if ((e.lo[1] | e.hi[1]) == 0) continue;
    std::uint32_t best = ~0u;
    for (std::uint32_t form = 0; form < forms_tried(mode); ++form) {
      const std::uint32_t order = form_order(form);
      const I shift = order == 0 ? u.centre : I{0};
      const I lo = e.lo[order] - shift;
      const I hi = e.hi[order] - shift;
      const std::uint32_t cost = residual_width(lo, hi, form & 1) * 8 + form;
      best = cost < best ? cost : best;
    }
    const std::uint32_t width = best / 8;
    u.widths[b] = static_cast<std::uint8_t>(width);
    u.block_forms[b] = static_cast<std::uint8_t>(best % 8);
    least = width < least ? width : least;
    most = width > most ? width : most;
    used |= 1u << (best % 8);
    planes += width;
    ++plan.coded_blocks;
  }
  if (plan.coded_blocks == 0) return;
  plan.least_width = least;
  plan.form_count = static_cast<std::uint32_t>(__builtin_popcount(used));
  plan.code_bits = bit_count((most - least + 1) * plan.form_count - 1);
  plan.head |= least | used << forms_shift | plan.code_bits << code_bits_shift;
  plan.words +=
      planes + static_cast<std::uint32_t>(ceil_div(plan.coded_blocks * plan.code_bits, 32));
  if (plan.coded_blocks < u.blocks) {
    plan.head |= has_bitmap;
    plan.words += static_cast<std::uint32_t>(ceil_div(u.blocks, 32));
  }
  constexpr std::uint32_t order0 = 3u << 4;
  if ((used & order0) != 0 && u.centre != 0) {
    plan.head |= has_centre;
    plan.words += sizeof(I) / 4;
  }
}

/// Decides how each block's exceptions are kept.
template <class T, class I>
void plan_exceptions(const EncodingUnit<T, I>& u, const unsigned char* in, std::size_t count,
                     Plan& plan) {
  using Bits = typename Traits<T>::Bits;
  constexpr std::uint32_t value_words = sizeof(T) / 4;
  alignas(64) Bits x[block_elements];
  Bits fill = 0;
  bool found = false;
  for (std::uint32_t b = 0; b < u.blocks; ++b) {
    const std::uint32_t mask = u.exceptions[b];
    if (mask == 0) continue;
    load_block(in, count, b, x);
    if (!found) {
      const auto i = static_cast<std::uint32_t>(__builtin_ctz(mask));
      fill = x[i];
      plan.first_exception = b * block_elements + i;
      found = true;
    }
    bool uniform = true;
    for (std::uint32_t i = 0; i < block_elements; ++i) {
      uniform &= ((mask >> i) & 1) == 0 || x[i] == fill;
    }
    const std::uint32_t bit = 1u << (b % 32);
    const bool whole = uniform && mask == ~0u;
    if (!whole) plan.partial[b / 32] |= bit;
    if (whole || !uniform) plan.listed[b / 32] |= bit;
    if (!whole) ++plan.words;
    if (!uniform) {
      plan.words += static_cast<std::uint32_t>(__builtin_popcount(mask)) * value_words;
    }
  }
  plan.head |= has_exceptions;
  plan.words += 2 * static_cast<std::uint32_t>(ceil_div(u.blocks, 32)) + value_words;
}

/// Writes bitmap and codes of the blocks.
template <class T, class I>
void write_codes(const EncodingUnit<T, I>& u, const Plan& plan, unsigned char*& out) {
  if ((plan.head & has_bitmap) != 0) {
    for (std::uint32_t first = 0; first < u.blocks; first += 32) {
      std::uint32_t map = 0;
      for (std::uint32_t i = 0; i < 32 && first + i < u.blocks; ++i) {
        map |= static_cast<std::uint32_t>(u.block_forms[first + i] != u.no_form) << i;
      }
      put_word(out, map);
    }
  }
  if (plan.code_bits == 0) return;
  std::uint32_t rank[forms];
  for (std::uint32_t f = 0, next = 0; f < forms; ++f) {
    rank[f] = next;
    next += (plan.head >> (forms_shift + f)) & 1;
  }
  std::uint64_t bits = 0;
  std::uint32_t filled = 0;
  for (std::uint32_t b = 0; b < u.blocks; ++b) {
    const std::uint32_t form = u.block_forms[b];
    if (form == u.no_form) continue;
    const std::uint32_t code = (u.widths[b] - plan.least_width) * plan.form_count + rank[form];
    bits |= std::uint64_t{code} << filled;
    filled += plan.code_bits;
    if (filled >= 32) {
      put_word(out, static_cast<std::uint32_t>(bits));
      bits >>= 32;
      filled -= 32;
    }
  }
  if (filled > 0) put_word(out, static_cast<std::uint32_t>(bits));
}

/// Residuals of one block, biased to be non-negative.
template <class I>
void predict_block(const I* q, std::uint32_t form, I centre, I shift, I* residuals) {
  switch (form_order(form)) {
    case 1:
      for (std::uint32_t i = 0; i < block_elements; ++i) residuals[i] = q[i] - (q + i)[-1] + shift;
      break;
    case 2:
      for (std::uint32_t i = 0; i < block_elements; ++i) {
        residuals[i] = q[i] - 2 * (q + i)[-1] + (q + i)[-2] + shift;
      }
      break;
    case 3:
      for (std::uint32_t i = 0; i < block_elements; ++i) {
        const I* p = q + i;
        residuals[i] = p[0] - p[-3] - 3 * (p[-1] - p[-2]) + shift;
      }
      break;
    default:
      for (std::uint32_t i = 0; i < block_elements; ++i) residuals[i] = q[i] - centre + shift;
  }
}

template <class T, class I>
void write_exceptions(const EncodingUnit<T, I>& u, const Plan& plan, const unsigned char* in,
                      std::size_t count, unsigned char*& out) {
  const auto set = [](const std::uint32_t* map, std::uint32_t b) {
    return ((map[b / 32] >> (b % 32)) & 1) != 0;
  };
  for (std::uint32_t b = 0; b < u.blocks; ++b) {
    if (set(plan.partial, b)) put_word(out, u.exceptions[b]);
  }
  alignas(64) typename Traits<T>::Bits x[block_elements];
  for (std::uint32_t b = 0; b < u.blocks; ++b) {
    if (!set(plan.partial, b) || !set(plan.listed, b)) continue;
    load_block(in, count, b, x);
    for (std::uint32_t mask = u.exceptions[b]; mask != 0; mask &= mask - 1) {
      put_value(out, x[__builtin_ctz(mask)]);
    }
  }
}

template <class T, class I>
void write_unit(EncodingUnit<T, I>& u, const Plan& plan, const unsigned char* in, std::size_t count,
                unsigned char* out) {
  put_word(out, plan.head);
  const I* q = u.quanta();
  if ((plan.head & has_origin) != 0) put_value(out, q[0]);
  if ((plan.head & has_centre) != 0) put_value(out, u.centre);
  write_codes(u, plan, out);
  if ((plan.head & has_exceptions) != 0) {
    const std::size_t map_words = ceil_div(u.blocks, 32);
    for (std::size_t i = 0; i < map_words; ++i) put_word(out, plan.partial[i]);
    for (std::size_t i = 0; i < map_words; ++i) put_word(out, plan.listed[i]);
    __builtin_memcpy(out, in + plan.first_exception * sizeof(T), sizeof(T));
    out += sizeof(T);
  }
  alignas(64) I residuals[block_elements];
  for (std::uint32_t b = 0; b < u.blocks; ++b, q += block_elements) {
    const std::uint32_t form = u.block_forms[b];
    const std::uint32_t width = u.widths[b];
    if (form == u.no_form || width == 0) continue;
    predict_block(q, form, u.centre, bias<I>(width, form), residuals);
    pack_planes(residuals, width, out);
    out += 4 * width;
  }
  if ((plan.head & has_exceptions) != 0) write_exceptions(u, plan, in, count, out);
}

/// Encodes a unit from its quanta; its `count` elements `in` are read where some are exceptional.
template <class T, class I>
EncodedUnit pack_unit(EncodingUnit<T, I>& u, Mode mode, const unsigned char* in, std::size_t count,
                      unsigned char* out, std::size_t room) {
  if (u.any == 0 && !u.exceptional) return {0, false};
  analyse_unit(u);
  if (mode == Mode::dense) analyse_order3(u);
  Plan plan;
  plan.words = 1;
  if (sizeof(I) == 8) plan.head |= is_wide;
  if (u.quanta()[0] != 0) {
    plan.head |= has_origin;
    plan.words += sizeof(I) / 4;
  }
  plan_residuals(u, mode, plan);
  if (u.exceptional) plan_exceptions(u, in, count, plan);
  const bool raw = plan.words >= count * sizeof(T) / 4;
  if (!raw && plan.words <= room) write_unit(u, plan, in, count, out);
  return {plan.words, raw};
}

/// Encodes with quanta of type I. False where they need more.
template <class T, class I>
bool encode_as(const Quantizer<T>& z, Mode mode, const unsigned char* in, std::size_t count,
               unsigned char* out, std::size_t room, EncodedUnit& result, void* scratch) {
  static_assert(sizeof(EncodingUnit<T, I>) <= scratch_bytes);
  auto& u = *new (scratch) EncodingUnit<T, I>;
  if (!quantize_unit(u, z, in, count)) return false;
  result = pack_unit(u, mode, in, count, out, room);
  return true;
}

}  // namespace

EncodedUnit encode_unit(const Quantizer<float>& z, Mode mode, const unsigned char* in,
                        std::size_t count, unsigned char* out, std::size_t room, void* scratch) {
  EncodedUnit result;
  encode_as<float, std::int32_t>(z, mode, in, count, out, room, result, scratch);
  return result;
}

EncodedUnit encode_unit(const Quantizer<double>& z, Mode mode, const unsigned char* in,
                        std::size_t count, unsigned char* out, std::size_t room, void* scratch) {
  EncodedUnit result;
  if (!encode_as<double, std::int32_t>(z, mode, in, count, out, room, result, scratch)) {
    encode_as<double, std::int64_t>(z, mode, in, count, out, room, result, scratch);
  }
  return result;
}

}  // namespace mpress::codec::szp::MPRESS_ISA
