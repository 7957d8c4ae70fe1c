// Bit planes of `zfp` in AVX2 lanes: 16 blocks at once, one a lane of two vectors, which hide
// each other's latency. For zfp/avx2.cpp only.
//
// As in zfp_avx512_planes.hpp, 32 planes from the first that is not empty are all that a budget
// of 64 bits can reach. Steps of the plane automaton are byte shuffles here, whose tables have 16
// entries: so verbatim bits are handled by shifts and the tables hold the rest of a step.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "codec/zfp/format.hpp"
#include "codec/zfp/kernels.hpp"

namespace mpress::codec::zfp::MPRESS_ISA {
namespace {

/// Sixteen 32-bit lanes.
struct Vector {
  __m256i a, b;
};

// Operations lane by lane: those of the instructions they name, on both halves.
#define MPRESS_LANEWISE(name, instruction)                                   \
  Vector name(Vector x, Vector y) {                                          \
    return {_mm256_##instruction(x.a, y.a), _mm256_##instruction(x.b, y.b)}; \
  }
MPRESS_LANEWISE(both_of, and_si256)
MPRESS_LANEWISE(any_of, or_si256)
MPRESS_LANEWISE(differ, xor_si256)
MPRESS_LANEWISE(without, andnot_si256)  // y without x
MPRESS_LANEWISE(add, add_epi32)
MPRESS_LANEWISE(subtract, sub_epi32)
MPRESS_LANEWISE(subtract_to_0, subs_epu16)  // for values below 2^16
MPRESS_LANEWISE(larger, max_epi32)
MPRESS_LANEWISE(exceeds, cmpgt_epi32)
MPRESS_LANEWISE(equals, cmpeq_epi32)
MPRESS_LANEWISE(left_by, sllv_epi32)
MPRESS_LANEWISE(right_by, srlv_epi32)
MPRESS_LANEWISE(left64_by, sllv_epi64)
MPRESS_LANEWISE(right64_by, srlv_epi64)
MPRESS_LANEWISE(unpack_low, unpacklo_epi32)
MPRESS_LANEWISE(unpack_high, unpackhi_epi32)
#undef MPRESS_LANEWISE

template <int Bits>
Vector left(Vector x) {
  return {_mm256_slli_epi32(x.a, Bits), _mm256_slli_epi32(x.b, Bits)};
}
template <int Bits>
Vector right(Vector x) {
  return {_mm256_srli_epi32(x.a, Bits), _mm256_srli_epi32(x.b, Bits)};
}
/// Bits outside 0..63 give zeros.
Vector left64(Vector x, int bits) {
  const __m128i count = _mm_cvtsi64_si128(bits);
  return {_mm256_sll_epi64(x.a, count), _mm256_sll_epi64(x.b, count)};
}
Vector right64(Vector x, int bits) {
  const __m128i count = _mm_cvtsi64_si128(bits);
  return {_mm256_srl_epi64(x.a, count), _mm256_srl_epi64(x.b, count)};
}
/// Bytes of y where those of `mask` have their top bit, else of x.
Vector blend(Vector x, Vector y, Vector mask) {
  return {_mm256_blendv_epi8(x.a, y.a, mask.a), _mm256_blendv_epi8(x.b, y.b, mask.b)};
}
template <int Control>
Vector shuffle(Vector x, Vector y) {
  const auto one = [](__m256i l, __m256i h) {
    return _mm256_castps_si256(
        _mm256_shuffle_ps(_mm256_castsi256_ps(l), _mm256_castsi256_ps(h), Control));
  };
  return {one(x.a, y.a), one(x.b, y.b)};
}

Vector all(int value) { return {_mm256_set1_epi32(value), _mm256_set1_epi32(value)}; }
Vector zeros() { return all(0); }
bool any_set(Vector v) {
  const __m256i either = _mm256_or_si256(v.a, v.b);
  return _mm256_testz_si256(either, either) == 0;
}

/// 32-bit lanes as 64-bit ones, and back: the order is that of unpack instructions.
struct Wide {
  Vector low, high;
};
Wide widen(Vector low, Vector high) { return {unpack_low(low, high), unpack_high(low, high)}; }
Wide widen(Vector v) { return widen(v, zeros()); }
Vector low_halves(const Wide& w) { return shuffle<0x88>(w.low, w.high); }
Vector high_halves(const Wide& w) { return shuffle<0xDD>(w.low, w.high); }

// ---- Coefficients <-> planes ----------------------------------------------------------------

/// Exchanges blocks of `Distance` bits of x and y: the upper ones of x for the lower ones of y.
template <int Distance>
void exchange(Vector& x, Vector& y, int lower) {
  const Vector t = both_of(differ(right<Distance>(x), y), all(lower));
  y = differ(y, t);
  x = differ(x, left<Distance>(t));
}

}  // namespace
}  // namespace mpress::codec::zfp::MPRESS_ISA

#include "codec/zfp/transpose.hpp"

namespace mpress::codec::zfp::MPRESS_ISA {
namespace {

// ---- Steps of the automaton -----------------------------------------------------------------

/// Tables of bytes for the shuffles, each twice: once for each half of a vector.
struct ByteTables {
  // Encoding. A block's first plane x (state 0): its code; its length and, from bit 4, the next
  // state. Later, at 16 >> n | x >> n in the state n: what follows the verbatim bits, as its code
  // and from bit 5 its length; and the next state. All of 0 is a step that does nothing.
  alignas(32) std::uint8_t first_code[32] = {};
  alignas(32) std::uint8_t first_length[32] = {};
  alignas(32) std::uint8_t code[32] = {};
  alignas(32) std::uint8_t next[32] = {};
  // Decoding. Bits 0..6 of Tables::step for the indices 0..15, 32..47, 48..63 and of
  // Tables::first.
  alignas(32) std::uint8_t step_low[32] = {};
  alignas(32) std::uint8_t step_32[32] = {};
  alignas(32) std::uint8_t step_48[32] = {};
  alignas(32) std::uint8_t first_step[32] = {};
  // The elements up to the last one set in a nibble.
  alignas(32) std::uint8_t reach[32] = {};

  constexpr ByteTables() {
    for (unsigned i = 0; i < 32; ++i) {
      const unsigned x = i % 16;
      const unsigned first = plane_code(0, x);
      first_code[i] = static_cast<std::uint8_t>(first >> 2 & 127);
      first_length[i] = static_cast<std::uint8_t>(first >> 13 | next_state(first, x) << 4);
      for (unsigned n = 1; n <= 4; ++n) {
        const unsigned rest = x ^ 16u >> n;
        if (rest >= 16u >> n) continue;
        const unsigned step = n < 4 ? plane_code(n, rest << n) : n << 13;
        const unsigned length = (step >> 13) - n;
        code[i] = static_cast<std::uint8_t>((step >> 2 & 127) >> n | length << 5);
        next[i] = static_cast<std::uint8_t>(next_state(step, 1));
        break;
      }
      step_low[i] = kTables.step[x] & 127;
      step_32[i] = kTables.step[32 + x] & 127;
      step_48[i] = kTables.step[48 + x] & 127;
      first_step[i] = kTables.first[x & 7] & 127;
      for (unsigned n = 0; n < 4; ++n) {
        if ((x >> n & 1) != 0) reach[i] = static_cast<std::uint8_t>(n + 1);
      }
    }
  }

  static constexpr unsigned next_state(unsigned step, unsigned x) {
    return x == 0 ? 0 : (step & 3) == 0 ? 4 : step & 3;
  }
};
constexpr ByteTables kByteTables;

Vector look_up(const std::uint8_t* table, Vector index) {
  const __m256i t = _mm256_load_si256(reinterpret_cast<const __m256i*>(table));
  return {_mm256_shuffle_epi8(t, index.a), _mm256_shuffle_epi8(t, index.b)};
}

/// The low `n` bits of each lane.
Vector low_bits(Vector v, Vector n) { return without(left_by(all(-1), n), v); }

// ---- Planes <-> bits ------------------------------------------------------------------------

/// A group between the element type's side and the stream's.
struct Group {
  Vector coefficient[4];  // negabinary, shifted left by `lead`, the upper 32 bits
  Vector lead;
  Vector exponent;
  Vector coded;  // -1 for blocks that are not zero
};

/// The bits of the blocks; those above the budget are not cleared.
template <int HeaderBits>
Wide encode_bits(Group& group, int budget) {
  Vector(&planes)[4] = group.coefficient;
  coefficients_to_planes(planes);
  Wide bits = widen(both_of(any_of(left<1>(group.exponent), all(1)), group.coded));
  Vector at = add(group.lead, all(HeaderBits));

  Vector next = planes[0];
  Vector x = both_of(next, all(15));
  Vector codes = look_up(kByteTables.first_code, x);
  const Vector first_length = look_up(kByteTables.first_length, x);
  Vector length = both_of(first_length, all(15));
  Vector n = right<4>(first_length);
  int done = 0;
  for (int plane = 1;; plane = 0) {
    for (; plane < 4; ++plane) {
      x = both_of(right_by(next, all(4 * plane)), all(15));
      const Vector index = any_of(right_by(x, n), right_by(all(16), n));
      const Vector step = look_up(kByteTables.code, index);
      const Vector rest = left_by(both_of(step, all(31)), n);
      codes = any_of(codes, left_by(any_of(low_bits(x, n), rest), length));
      length = add(length, add(n, right<5>(step)));
      n = look_up(kByteTables.next, index);
    }
    const Wide code = widen(codes);
    const Wide place = widen(at);
    bits.low = any_of(bits.low, left64_by(code.low, place.low));
    bits.high = any_of(bits.high, left64_by(code.high, place.high));
    at = add(at, length);
    done += 4;
    const Vector open = both_of(both_of(exceeds(all(4), n), group.coded), exceeds(all(budget), at));
    if (done == 32 || !any_set(open)) break;
    next = planes[done / 8];
    if (done % 8 != 0) next = right<16>(next);
    codes = length = zeros();
  }

  // The rest is verbatim, or beyond the budget.
  const Wide first = widen(planes[0], planes[1]);
  const Wide second = widen(planes[2], planes[3]);
  const Wide place = widen(at);
  const auto append = [done](Vector& word, Vector l, Vector h, Vector where) {
    const Vector rest =
        any_of(any_of(right64(l, 4 * done), left64(h, 64 - 4 * done)), right64(h, 4 * done - 64));
    word = any_of(word, left64_by(rest, where));
  };
  append(bits.low, first.low, second.low, place.low);
  append(bits.high, first.high, second.high, place.high);
  return bits;
}

/// Where the lowest bit of each 64-bit lane is, counted from 1; 0 for lanes without bits.
[[gnu::always_inline]] inline Vector lowest_bit(const Wide& w) {
  const Vector low = low_halves(w);
  const Vector none = equals(low, zeros());
  if (any_set(both_of(none, high_halves(w)))) [[unlikely]] {  // not in what an encoder writes
    alignas(32) Wide place = w;
    std::uint64_t words[16];
    std::memcpy(words, &place, sizeof words);
    for (std::uint64_t& word : words) {
      word = static_cast<std::uint64_t>(__builtin_ffsll(static_cast<long long>(word)));
    }
    std::memcpy(&place, words, sizeof words);
    return low_halves(place);
  }
  const Vector lowest = both_of(low, subtract(zeros(), low));
  const Vector as_float = {_mm256_castps_si256(_mm256_cvtepi32_ps(lowest.a)),
                           _mm256_castps_si256(_mm256_cvtepi32_ps(lowest.b))};
  return without(none, subtract(both_of(right<23>(as_float), all(255)), all(126)));
}

/// Fills all of `group` from the bits of its blocks.
template <int HeaderBits>
void decode_bits(Wide bits, int budget, Group& group) {
  const Vector start = low_halves(bits);
  group.coded = subtract(zeros(), both_of(start, all(1)));
  group.exponent = both_of(right<1>(start), all((1 << (HeaderBits - 1)) - 1));
  // Drops the header, the empty planes before the first other one, and its group test.
  const Wide coded = widen(group.coded, group.coded);
  bits.low = both_of(right64(bits.low, HeaderBits), coded.low);
  bits.high = both_of(right64(bits.high, HeaderBits), coded.high);
  const Vector skipped = lowest_bit(bits);
  const auto drop = [&bits](Vector counts) {
    const Wide shift = widen(counts);
    bits.low = right64_by(bits.low, shift.low);
    bits.high = right64_by(bits.high, shift.high);
  };
  drop(skipped);
  group.lead = subtract(skipped, all(1));
  const Vector left_over = subtract(all(budget - HeaderBits), skipped);

  // A block's first plane goes on with a scan, not with verbatim bits. In blocks without planes
  // the state stays 0, which does nothing.
  Vector window = low_halves(bits);
  const Vector first = both_of(look_up(kByteTables.first_step, both_of(window, all(7))),
                               both_of(exceeds(skipped, zeros()), all(255)));
  Vector x = both_of(first, all(15));
  Vector used = right<4>(first);
  window = right_by(window, used);
  Vector n = look_up(kByteTables.reach, x);
  Vector before = zeros();  // bits used by earlier groups of planes
  Vector planes_by_4[8] = {};
  int done = 0;
  for (;;) {
    Vector planes = zeros();
    for (int plane = 0; plane < 4; ++plane) {
      if (plane != 0 || done != 0) {
        x = low_bits(window, n);
        window = right_by(window, n);
        used = add(used, n);
      }
      // The index into Tables::step; 0 for the state 4, 128 or more for the state 0.
      const Vector twice = add(n, n);
      const Vector index =
          any_of(both_of(window, right_by(all(127), twice)), right_by(all(128), twice));
      const Vector upper = blend(look_up(kByteTables.step_32, index),
                                 look_up(kByteTables.step_48, index), left<3>(index));
      const Vector step = blend(look_up(kByteTables.step_low, index), upper, left<2>(index));
      const Vector length = right<4>(step);
      x = any_of(x, both_of(step, all(15)));
      window = right_by(window, length);
      used = add(used, length);
      n = larger(n, look_up(kByteTables.reach, x));
      // See decode_planes(): a scan that the budget cuts.
      const Vector over = subtract_to_0(used, left_over);
      x = any_of(both_of(x, all(7)), right_by(both_of(x, all(8)), over));
      planes = any_of(planes, left_by(x, all(4 * plane)));
    }
    planes_by_4[done / 4] = planes;
    done += 4;
    drop(subtract(used, before));
    before = used;
    window = low_halves(bits);
    const Vector open = both_of(exceeds(all(4), n), any_of(window, high_halves(bits)));
    if (done == 32 || !any_set(open)) break;
  }

  // What is left is verbatim planes, or nothing.
  const auto word = [&](int i) {
    return any_of(planes_by_4[2 * i], left<16>(planes_by_4[2 * i + 1]));
  };
  Wide low = widen(word(0), word(1));
  Wide high = widen(word(2), word(3));
  const auto append = [done](Vector& l, Vector& h, Vector rest) {
    l = any_of(l, left64(rest, 4 * done));
    h = any_of(h, any_of(right64(rest, 64 - 4 * done), left64(rest, 4 * done - 64)));
  };
  append(low.low, high.low, bits.low);
  append(low.high, high.high, bits.high);
  group.coefficient[0] = low_halves(low);
  group.coefficient[1] = high_halves(low);
  group.coefficient[2] = low_halves(high);
  group.coefficient[3] = high_halves(high);
  planes_to_coefficients(group.coefficient);
}

}  // namespace
}  // namespace mpress::codec::zfp::MPRESS_ISA
