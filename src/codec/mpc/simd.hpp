// The mpc kernel over vectors, written once. Each instruction set's source defines MPRESS_ISA
// (through the build), a vector type V for each word, and includes this.
//
// V:  Word, R (a register), lanes, step (registers that hold whole blocks: 1 or 2)
//     load, store, set1, add, sub, or_, and_, xor_, andnot(a, b) = ~a & b, umin, umax
//     shl1, shr1, shl(a, count), shr(a, count)
//     sign(a): all ones where the sign bit is set     low(a): all ones where bit 0 is set
//     add_nonzero(a, b): a + b, but 0 where a is 0
//     low_to_sign(a): bit 0 becomes the sign bit, the others 0
//     fold(a, op): op over all lanes
//     sum_lanes(a): inclusive prefix sum over the lanes     last(a): the last lane in all lanes
//     block_widths(any, widths): any[] holds a group's elements, the registers of a block
//         or-ed into one; the bit widths of its 16 blocks
//     store_planes(r, widths, out) / load_planes(in, widths, r): one step's blocks as bit
//         planes; both return the advanced pointer and may touch kSlack bytes
#pragma once

#include <immintrin.h>

#include "codec/mpc/unit.hpp"

namespace mpress::codec::mpc::MPRESS_ISA {
namespace {

template <class V>
struct Kernel {
  using Word = typename V::Word;
  using R = typename V::R;
  static constexpr unsigned lanes = V::lanes;
  static constexpr unsigned step = V::step;
  static constexpr unsigned step_lanes = lanes * step;
  static constexpr unsigned step_blocks = step_lanes / kBlock;

  static Extent<Word> range(const Word* in, unsigned n) {
    R least = V::set1(~Word{0}), largest = V::set1(0), any = largest;
    const R sign = V::set1(Layout<Word>::sign), one = V::set1(1);
    for (unsigned i = 0; i < n; i += lanes) {
      const R x = V::load(in + i);
      const R magnitude = V::andnot(sign, x);
      least = V::umin(least, V::sub(magnitude, one));
      largest = V::umax(largest, magnitude);
      any = V::or_(any, x);
    }
    return {V::fold(least, V::umin), V::fold(largest, V::umax), V::fold(any, V::or_)};
  }

  static void order(const Word* in, unsigned n, Scale<Word> scale, Word* ordered) {
    const R sign = V::set1(Layout<Word>::sign), gap = V::set1(scale.gap);
    for (unsigned i = 0; i < n; i += lanes) {
      const R x = V::load(in + i);
      const R magnitude = V::shr(V::andnot(sign, x), scale.shift);
      const R above = V::sub(V::umax(magnitude, gap), gap);
      V::store(ordered + i, V::xor_(above, V::sign(x)));
    }
  }

  template <unsigned Order>
  static R residual(const Word* in, const Word* ordered, Scale<Word> scale) {
    if constexpr (Order == 0) {
      const R x = V::load(in);
      const R magnitude = V::shr(V::andnot(V::set1(Layout<Word>::sign), x), scale.shift);
      return V::sub(V::shl1(V::sub(V::set1(scale.ceiling), magnitude)), V::sign(x));
    } else {
      R d = V::sub(V::load(ordered), V::load(ordered - 1));
      if constexpr (Order == 2) {
        d = V::sub(d, V::sub(V::load(ordered - 1), V::load(ordered - 2)));
      }
      return V::xor_(V::shl1(d), V::sign(d));
    }
  }

  template <unsigned Order>
  static void measure_group(const Word* in, const Word* ordered, Scale<Word> scale,
                            std::uint8_t* widths) {
    R any[kGroup / step_lanes];
    for (unsigned k = 0; k < kGroup / step_lanes; ++k) {
      const unsigned i = k * step_lanes;
      any[k] = residual<Order>(in + i, ordered + i, scale);
      if constexpr (step == 2) {
        any[k] = V::or_(any[k], residual<Order>(in + i + lanes, ordered + i + lanes, scale));
      }
    }
    V::block_widths(any, widths);
  }

  static void measure(const Word* in, const Word* ordered, unsigned n, Scale<Word> scale,
                      std::uint8_t (*widths)[kUnitBlocks<Word>]) {
    for (unsigned i = 0; i < n; i += kGroup) {
      measure_group<0>(in + i, ordered + i, scale, widths[0] + i / kBlock);
      measure_group<1>(in + i, ordered + i, scale, widths[1] + i / kBlock);
      measure_group<2>(in + i, ordered + i, scale, widths[2] + i / kBlock);
    }
  }

  static unsigned sum_bytes(__m128i x) {
    const __m128i s = _mm_sad_epu8(x, _mm_setzero_si128());
    return static_cast<unsigned>(_mm_extract_epi16(s, 0) + _mm_extract_epi16(s, 4));
  }

  static GroupTable choose_table(std::uint8_t* widths, unsigned char* table) {
    const __m128i w = _mm_load_si128(reinterpret_cast<const __m128i*>(widths));
    __m128i m = _mm_max_epu8(w, _mm_srli_si128(w, 8));
    m = _mm_max_epu8(m, _mm_srli_si128(m, 4));
    m = _mm_max_epu8(m, _mm_srli_si128(m, 2));
    m = _mm_max_epu8(m, _mm_srli_si128(m, 1));
    const unsigned code = width_to_code(static_cast<unsigned>(_mm_extract_epi8(m, 0)));
    const unsigned largest = code_to_width(code);
    const __m128i top = _mm_set1_epi8(static_cast<char>(largest));
    const __m128i d = _mm_sub_epi8(top, w);
    const __m128i empty = _mm_cmpeq_epi8(w, _mm_setzero_si128());

    const __m128i entries[4] = {
        _mm_setzero_si128(), _mm_min_epu8(d, _mm_set1_epi8(3)), _mm_min_epu8(d, _mm_set1_epi8(7)),
        _mm_or_si128(_mm_min_epu8(d, _mm_set1_epi8(14)), _mm_and_si128(empty, _mm_set1_epi8(15)))};
    const __m128i narrow = _mm_andnot_si128(empty, _mm_sub_epi8(top, entries[3]));
    const unsigned whole = kGroupBlocks * largest;
    const unsigned planes[4] = {whole, whole - sum_bytes(entries[1]), whole - sum_bytes(entries[2]),
                                sum_bytes(narrow)};
    unsigned kind = 0;
    for (unsigned k = 1; k < 4; ++k) {
      if (planes[k] + table_bytes(k) < planes[kind] + table_bytes(kind)) kind = k;
    }
    const __m128i entry = entries[kind];
    const __m128i kept = kind == 3 ? narrow : _mm_sub_epi8(top, entry);
    _mm_store_si128(reinterpret_cast<__m128i*>(widths), kept);
    const std::uint64_t weights =
        static_cast<std::uint64_t>(_mm_movemask_epi8(_mm_slli_epi16(entry, 7))) |
        static_cast<std::uint64_t>(_mm_movemask_epi8(_mm_slli_epi16(entry, 6))) << 16 |
        static_cast<std::uint64_t>(_mm_movemask_epi8(_mm_slli_epi16(entry, 5))) << 32 |
        static_cast<std::uint64_t>(_mm_movemask_epi8(_mm_slli_epi16(entry, 4))) << 48;
    std::memcpy(table, &weights, 8);
    return {static_cast<unsigned char>(code | kind << 6), table_bytes(kind), planes[kind]};
  }

  static unsigned read_table(unsigned kind, unsigned largest, const unsigned char* table,
                             std::uint8_t* widths) {
    std::uint64_t weights;
    std::memcpy(&weights, table, 8);
    weights = _bzhi_u64(weights, 8 * table_bytes(kind));
    const __m128i all = _mm_cvtsi64_si128(static_cast<long long>(weights));
    const __m128i bit = _mm_set1_epi64x(static_cast<long long>(0x8040201008040201u));
    __m128i entry = _mm_setzero_si128();
    for (int i = 0; i < 4; ++i) {
      const char lo = static_cast<char>(2 * i), hi = static_cast<char>(2 * i + 1);
      const __m128i spread = _mm_shuffle_epi8(
          all, _mm_setr_epi8(lo, lo, lo, lo, lo, lo, lo, lo, hi, hi, hi, hi, hi, hi, hi, hi));
      const __m128i set = _mm_cmpeq_epi8(_mm_and_si128(spread, bit), bit);
      entry = _mm_or_si128(entry, _mm_and_si128(set, _mm_set1_epi8(static_cast<char>(1 << i))));
    }
    const __m128i empty = _mm_cmpeq_epi8(entry, _mm_set1_epi8(15));
    const __m128i top = _mm_set1_epi8(static_cast<char>(largest));
    const __m128i w = _mm_andnot_si128(empty, _mm_subs_epu8(top, entry));
    _mm_store_si128(reinterpret_cast<__m128i*>(widths), w);
    return sum_bytes(w);
  }

  template <unsigned Order>
  static unsigned char* pack_order(const Word* in, const Word* ordered, unsigned n,
                                   Scale<Word> scale, const std::uint8_t* widths,
                                   unsigned char* out) {
    for (unsigned i = 0; i < n; i += step_lanes) {
      R r[step];
      for (unsigned s = 0; s < step; ++s) {
        r[s] = residual<Order>(in + i + s * lanes, ordered + i + s * lanes, scale);
      }
      out = V::store_planes(r, widths, out);
      widths += step_blocks;
    }
    return out;
  }

  static unsigned char* pack(unsigned order, const Word* in, const Word* ordered, unsigned n,
                             Scale<Word> scale, const std::uint8_t* widths, unsigned char* out) {
    if (order == 0) return pack_order<0>(in, ordered, n, scale, widths, out);
    if (order == 1) return pack_order<1>(in, ordered, n, scale, widths, out);
    return pack_order<2>(in, ordered, n, scale, widths, out);
  }

  template <unsigned Order>
  static void unpack_order(const unsigned char* in, const std::uint8_t* widths, unsigned n,
                           Word seed, Scale<Word> scale, Word* out) {
    const R sign = V::set1(Layout<Word>::sign);
    const R gap = V::set1(scale.gap), ceiling = V::set1(scale.ceiling);
    R value = V::set1(seed), difference = V::set1(0);  // before this register, in all lanes
    for (unsigned i = 0; i < n; i += step_lanes) {
      R r[step];
      in = V::load_planes(in, widths, r);
      widths += step_blocks;
      for (unsigned s = 0; s < step; ++s) {
        Word* const to = out + i + s * lanes;
        if constexpr (Order == 0) {
          const R magnitude = V::shl(V::sub(ceiling, V::shr1(r[s])), scale.shift);
          V::store(to, V::or_(V::andnot(sign, magnitude), V::low_to_sign(r[s])));
        } else {
          // The sums within the register do not wait for what is carried in.
          R d = V::xor_(V::shr1(r[s]), V::low(r[s]));
          if constexpr (Order == 2) {
            const R sums = V::sum_lanes(d);
            d = V::add(sums, difference);
            difference = V::add(difference, V::last(sums));
          }
          const R sums = V::sum_lanes(d);
          const R x = V::add(sums, value);
          value = V::add(value, V::last(sums));
          const R negative = V::sign(x);
          const R above = V::add_nonzero(V::xor_(x, negative), gap);
          V::store(to, V::or_(V::shl(above, scale.shift), V::and_(sign, x)));
        }
      }
    }
  }

  static void unpack(unsigned order, const unsigned char* in, const std::uint8_t* widths,
                     unsigned n, Word seed, Scale<Word> scale, Word* out) {
    if (order == 0)
      unpack_order<0>(in, widths, n, seed, scale, out);
    else if (order == 1)
      unpack_order<1>(in, widths, n, seed, scale, out);
    else
      unpack_order<2>(in, widths, n, seed, scale, out);
  }
};

}  // namespace
}  // namespace mpress::codec::mpc::MPRESS_ISA
