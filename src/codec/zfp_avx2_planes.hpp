// Bit planes of `zfp` in AVX2 lanes: 8 blocks at once, one a lane. For zfp_avx2.cpp only.
//
// As in zfp_avx512_planes.hpp, 32 planes from the first that is not empty are all that a budget
// of 64 bits can reach. Steps of the plane automaton are byte shuffles here, whose tables have 16
// entries: so verbatim bits are handled by shifts and the tables hold the rest of a step.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "codec/zfp.hpp"
#include "codec/zfp_kernels.hpp"

namespace mpress::codec::zfp::MPRESS_ISA {
namespace {

using Vector = __m256i;

Vector all(int value) { return _mm256_set1_epi32(value); }
Vector any_of(Vector a, Vector b) { return _mm256_or_si256(a, b); }
Vector both_of(Vector a, Vector b) { return _mm256_and_si256(a, b); }

/// Eight 32-bit lanes as 64-bit ones, and back: the order is that of unpack instructions.
struct Wide {
  Vector a, b;
};
Wide widen(Vector low, Vector high) {
  return {_mm256_unpacklo_epi32(low, high), _mm256_unpackhi_epi32(low, high)};
}
Wide widen(Vector v) { return widen(v, _mm256_setzero_si256()); }
Vector low_halves(const Wide& w) {
  return _mm256_castps_si256(
      _mm256_shuffle_ps(_mm256_castsi256_ps(w.a), _mm256_castsi256_ps(w.b), 0x88));
}
Vector high_halves(const Wide& w) {
  return _mm256_castps_si256(
      _mm256_shuffle_ps(_mm256_castsi256_ps(w.a), _mm256_castsi256_ps(w.b), 0xDD));
}

// ---- Coefficients <-> planes ----------------------------------------------------------------

/// Exchanges blocks of `Distance` bits of a and b: the upper ones of a for the lower ones of b.
template <int Distance>
void exchange(Vector& a, Vector& b, int lower) {
  const Vector t =
      both_of(_mm256_xor_si256(_mm256_srli_epi32(a, Distance), b), all(lower));
  b = _mm256_xor_si256(b, t);
  a = _mm256_xor_si256(a, _mm256_slli_epi32(t, Distance));
}

void transpose_4x4_bits(Vector (&v)[4]) {
  exchange<1>(v[0], v[1], 0x55555555);
  exchange<1>(v[2], v[3], 0x55555555);
  exchange<2>(v[0], v[2], 0x33333333);
  exchange<2>(v[1], v[3], 0x33333333);
}

/// From 32 bits of each coefficient to 32 planes, topmost first: nibble s % 8 of v[s / 8] holds
/// plane s.
void coefficients_to_planes(Vector (&v)[4]) {
  transpose_4x4_bits(v);  // now nibble g of v[j] is the plane of bit 4 * g + j
  exchange<4>(v[3], v[2], 0x0F0F0F0F);
  exchange<4>(v[1], v[0], 0x0F0F0F0F);
  exchange<8>(v[2], v[0], 0x00FF00FF);
  exchange<8>(v[3], v[1], 0x00FF00FF);
  exchange<16>(v[2], v[3], 0x0000FFFF);
  exchange<16>(v[0], v[1], 0x0000FFFF);
  const Vector first = v[1];  // the coefficients' bytes from the top: v[1], v[3], v[0], v[2]
  v[1] = v[3], v[3] = v[2], v[2] = v[0], v[0] = first;
}

void planes_to_coefficients(Vector (&v)[4]) {
  const Vector first = v[0];
  v[0] = v[2], v[2] = v[3], v[3] = v[1], v[1] = first;
  exchange<16>(v[0], v[1], 0x0000FFFF);
  exchange<16>(v[2], v[3], 0x0000FFFF);
  exchange<8>(v[3], v[1], 0x00FF00FF);
  exchange<8>(v[2], v[0], 0x00FF00FF);
  exchange<4>(v[1], v[0], 0x0F0F0F0F);
  exchange<4>(v[3], v[2], 0x0F0F0F0F);
  transpose_4x4_bits(v);
}

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
  return _mm256_shuffle_epi8(
      _mm256_load_si256(reinterpret_cast<const __m256i*>(table)), index);
}

/// The low `n` bits of each lane.
Vector low_bits(Vector v, Vector n) {
  return _mm256_andnot_si256(_mm256_sllv_epi32(all(-1), n), v);
}

bool any_set(Vector v) { return _mm256_testz_si256(v, v) == 0; }

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
  Wide bits = widen(both_of(
      any_of(_mm256_add_epi32(group.exponent, group.exponent), all(1)), group.coded));
  Vector at = _mm256_add_epi32(group.lead, all(HeaderBits));

  Vector next = planes[0];
  Vector x = both_of(next, all(15));
  Vector codes = look_up(kByteTables.first_code, x);
  const Vector first_length = look_up(kByteTables.first_length, x);
  Vector length = both_of(first_length, all(15));
  Vector n = _mm256_srli_epi32(first_length, 4);
  int done = 0;
  for (int plane = 1;; plane = 0) {
    for (; plane < 4; ++plane) {
      x = both_of(_mm256_srlv_epi32(next, all(4 * plane)), all(15));
      const Vector index = any_of(_mm256_srlv_epi32(x, n), _mm256_srlv_epi32(all(16), n));
      const Vector step = look_up(kByteTables.code, index);
      const Vector rest = _mm256_sllv_epi32(both_of(step, all(31)), n);
      codes = any_of(codes, _mm256_sllv_epi32(any_of(low_bits(x, n), rest), length));
      length = _mm256_add_epi32(length, _mm256_add_epi32(n, _mm256_srli_epi32(step, 5)));
      n = look_up(kByteTables.next, index);
    }
    const Wide code = widen(codes);
    const Wide place = widen(at);
    bits.a = any_of(bits.a, _mm256_sllv_epi64(code.a, place.a));
    bits.b = any_of(bits.b, _mm256_sllv_epi64(code.b, place.b));
    at = _mm256_add_epi32(at, length);
    done += 4;
    const Vector open = both_of(both_of(_mm256_cmpgt_epi32(all(4), n), group.coded),
                                _mm256_cmpgt_epi32(all(budget), at));
    if (done == 32 || !any_set(open)) break;
    next = planes[done / 8];
    if (done % 8 != 0) next = _mm256_srli_epi32(next, 16);
    codes = length = _mm256_setzero_si256();
  }

  // The rest is verbatim, or beyond the budget. Shift counts out of range give zeros.
  const Wide first = widen(planes[0], planes[1]);
  const Wide second = widen(planes[2], planes[3]);
  const __m128i down = _mm_cvtsi64_si128(4 * done);
  const __m128i up = _mm_cvtsi64_si128(64 - 4 * done);
  const __m128i far = _mm_cvtsi64_si128(4 * done - 64);
  const Wide place = widen(at);
  const auto finish = [&](Vector word, Vector low, Vector high, Vector where) {
    const Vector rest = any_of(any_of(_mm256_srl_epi64(low, down), _mm256_sll_epi64(high, up)),
                               _mm256_srl_epi64(high, far));
    return any_of(word, _mm256_sllv_epi64(rest, where));
  };
  bits.a = finish(bits.a, first.a, second.a, place.a);
  bits.b = finish(bits.b, first.b, second.b, place.b);
  return bits;
}

/// Where the lowest bit of each lane is, counted from 1; 0 for lanes without bits.
Vector lowest_bit(const Wide& w) {
  const Vector low = low_halves(w);
  const Vector high = high_halves(w);
  const Vector none = _mm256_cmpeq_epi32(low, _mm256_setzero_si256());
  if (any_set(both_of(none, high))) [[unlikely]] {  // not in what an encoder writes
    alignas(32) std::uint64_t words[8];
    alignas(32) std::uint64_t place[8];
    _mm256_store_si256(reinterpret_cast<__m256i*>(words), w.a);
    _mm256_store_si256(reinterpret_cast<__m256i*>(words + 4), w.b);
    for (int i = 0; i < 8; ++i) {
      place[i] = static_cast<std::uint64_t>(__builtin_ffsll(static_cast<long long>(words[i])));
    }
    return low_halves({_mm256_load_si256(reinterpret_cast<const __m256i*>(place)),
                       _mm256_load_si256(reinterpret_cast<const __m256i*>(place + 4))});
  }
  const Vector lowest = both_of(low, _mm256_sub_epi32(_mm256_setzero_si256(), low));
  const Vector as_float = _mm256_castps_si256(_mm256_cvtepi32_ps(lowest));
  const Vector exponent = both_of(_mm256_srli_epi32(as_float, 23), all(255));
  return _mm256_andnot_si256(none, _mm256_sub_epi32(exponent, all(126)));
}

/// Fills all of `group` from the bits of its blocks.
template <int HeaderBits>
void decode_bits(Wide bits, int budget, Group& group) {
  const Vector start = low_halves(bits);
  group.coded = _mm256_sub_epi32(_mm256_setzero_si256(), both_of(start, all(1)));
  group.exponent = both_of(_mm256_srli_epi32(start, 1), all((1 << (HeaderBits - 1)) - 1));
  // Drops the header, the empty planes before the first other one, and its group test.
  const Wide coded = widen(group.coded, group.coded);
  bits.a = both_of(_mm256_srli_epi64(bits.a, HeaderBits), coded.a);
  bits.b = both_of(_mm256_srli_epi64(bits.b, HeaderBits), coded.b);
  const Vector skipped = lowest_bit(bits);
  const auto drop = [&bits](Vector counts) {
    const Wide shift = widen(counts);
    bits.a = _mm256_srlv_epi64(bits.a, shift.a);
    bits.b = _mm256_srlv_epi64(bits.b, shift.b);
  };
  drop(skipped);
  group.lead = _mm256_sub_epi32(skipped, all(1));
  const Vector left = _mm256_sub_epi32(all(budget - HeaderBits), skipped);

  // A block's first plane goes on with a scan, not with verbatim bits. In blocks without planes
  // the state stays 0, which does nothing.
  Vector window = low_halves(bits);
  const Vector first = _mm256_and_si256(
      look_up(kByteTables.first_step, both_of(window, all(7))),
      both_of(_mm256_cmpgt_epi32(skipped, _mm256_setzero_si256()), all(255)));
  Vector x = both_of(first, all(15));
  Vector used = _mm256_srli_epi32(first, 4);
  window = _mm256_srlv_epi32(window, used);
  Vector n = look_up(kByteTables.reach, x);
  Vector before = _mm256_setzero_si256();  // bits used by earlier groups of planes
  alignas(32) Vector planes_by_4[8] = {};
  int done = 0;
  for (;;) {
    Vector planes = _mm256_setzero_si256();
    for (int plane = 0; plane < 4; ++plane) {
      if (plane != 0 || done != 0) {
        x = low_bits(window, n);
        window = _mm256_srlv_epi32(window, n);
        used = _mm256_add_epi32(used, n);
      }
      // The index into Tables::step; 0 for the state 4, 128 or more for the state 0.
      const Vector twice = _mm256_add_epi32(n, n);
      const Vector index = any_of(both_of(window, _mm256_srlv_epi32(all(127), twice)),
                                  _mm256_srlv_epi32(all(128), twice));
      const Vector upper =
          _mm256_blendv_epi8(look_up(kByteTables.step_32, index),
                             look_up(kByteTables.step_48, index), _mm256_slli_epi32(index, 3));
      const Vector step = _mm256_blendv_epi8(look_up(kByteTables.step_low, index), upper,
                                             _mm256_slli_epi32(index, 2));
      const Vector length = _mm256_srli_epi32(step, 4);
      x = any_of(x, both_of(step, all(15)));
      window = _mm256_srlv_epi32(window, length);
      used = _mm256_add_epi32(used, length);
      n = _mm256_max_epi32(n, look_up(kByteTables.reach, x));
      // See decode_planes(): a scan that the budget cuts.
      const Vector over = _mm256_subs_epu16(used, left);
      x = any_of(both_of(x, all(7)), _mm256_srlv_epi32(both_of(x, all(8)), over));
      planes = any_of(planes, _mm256_sllv_epi32(x, all(4 * plane)));
    }
    planes_by_4[done / 4] = planes;
    done += 4;
    drop(_mm256_sub_epi32(used, before));
    before = used;
    window = low_halves(bits);
    const Vector rest = any_of(window, high_halves(bits));
    const Vector open = both_of(_mm256_cmpgt_epi32(all(4), n), rest);
    if (done == 32 || !any_set(open)) break;
  }

  // What is left is verbatim planes, or nothing.
  const auto word = [&](int i) {
    return any_of(planes_by_4[2 * i], _mm256_slli_epi32(planes_by_4[2 * i + 1], 16));
  };
  Wide low = widen(word(0), word(1));
  Wide high = widen(word(2), word(3));
  const __m128i up = _mm_cvtsi64_si128(4 * done);
  const __m128i down = _mm_cvtsi64_si128(64 - 4 * done);
  const __m128i far = _mm_cvtsi64_si128(4 * done - 64);
  const auto append = [&](Vector& l, Vector& h, Vector rest) {
    l = any_of(l, _mm256_sll_epi64(rest, up));
    h = any_of(h, any_of(_mm256_srl_epi64(rest, down), _mm256_sll_epi64(rest, far)));
  };
  append(low.a, high.a, bits.a);
  append(low.b, high.b, bits.b);
  group.coefficient[0] = low_halves(low);
  group.coefficient[1] = high_halves(low);
  group.coefficient[2] = low_halves(high);
  group.coefficient[3] = high_halves(high);
  planes_to_coefficients(group.coefficient);
}

}  // namespace
}  // namespace mpress::codec::zfp::MPRESS_ISA
