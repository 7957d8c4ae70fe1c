// Bit planes of `zfp` in AVX-512 lanes: 16 blocks at once, one a lane. For zfp/avx512.cpp only.
//
// Coefficients are shifted left until the block's first plane that is not empty is on top. From
// there on every plane costs at least two bits, so a budget of 64 bits reaches no further than
// the 32 planes that one 32-bit lane holds of each coefficient, in either element type.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "codec/zfp/format.hpp"
#include "codec/zfp/kernels.hpp"

namespace mpress::codec::zfp::MPRESS_ISA {
namespace {

using Vector = __m512i;

// ternarylogic: mask ? a : b, and (a & b) | c.
Vector select(Vector mask, Vector a, Vector b) {
  return _mm512_ternarylogic_epi32(mask, a, b, 0xCA);
}
Vector and_or(Vector a, Vector b, Vector c) { return _mm512_ternarylogic_epi32(a, b, c, 0xEA); }

Vector all(int value) { return _mm512_set1_epi32(value); }

/// Sixteen 32-bit lanes as 64-bit ones, and back: the order is that of unpack instructions.
struct Wide {
  Vector a, b;
};
Wide widen(Vector low, Vector high) {
  return {_mm512_unpacklo_epi32(low, high), _mm512_unpackhi_epi32(low, high)};
}
Wide widen(Vector v) { return widen(v, _mm512_setzero_si512()); }
Vector low_halves(const Wide& w) {
  return _mm512_castps_si512(
      _mm512_shuffle_ps(_mm512_castsi512_ps(w.a), _mm512_castsi512_ps(w.b), 0x88));
}
Vector high_halves(const Wide& w) {
  return _mm512_castps_si512(
      _mm512_shuffle_ps(_mm512_castsi512_ps(w.a), _mm512_castsi512_ps(w.b), 0xDD));
}

/// The lane of Wide (0..7 in a, 8..15 in b) that holds the 32-bit lane `lane`.
constexpr int wide_lane(int lane) { return (lane & 2) * 4 + lane / 4 * 2 + (lane & 1); }

// ---- Coefficients <-> planes ----------------------------------------------------------------

/// Exchanges blocks of `Distance` bits of a and b: the upper ones of a for the lower ones of b.
template <int Distance>
void exchange(Vector& a, Vector& b, int lower) {
  const Vector mask = all(lower);
  const Vector low = select(mask, a, _mm512_slli_epi32(b, Distance));
  b = select(mask, _mm512_srli_epi32(a, Distance), b);
  a = low;
}

}  // namespace
}  // namespace mpress::codec::zfp::MPRESS_ISA

#include "codec/zfp/transpose.hpp"

namespace mpress::codec::zfp::MPRESS_ISA {
namespace {

// ---- The layout of a group in the stream ----------------------------------------------------

constexpr std::uint64_t low_bits(unsigned n) { return n >= 64 ? ~0ull : (1ull << n) - 1; }

/// Moves 8 blocks of 64-bit lanes to `bits` bits each: 16-bit words are permuted, after shifts
/// that bring each block to its place in its first word. A word has bits of up to 3 blocks.
struct Packer {
  alignas(64) std::uint16_t index[3][32] = {};
  alignas(64) std::uint64_t shift[8];
  std::uint32_t used[3] = {};  // words that take part
  std::uint32_t bits;

  explicit Packer(std::uint32_t block_bits) : bits(block_bits) {
    for (unsigned i = 0; i < 8; ++i) shift[i] = i * bits % 16;
    for (unsigned word = 0; word < 32; ++word) {
      const unsigned first = 16 * word / bits;
      for (unsigned k = 0; k < 3 && first + k < 8; ++k) {
        const unsigned block = first + k;
        const unsigned offset = word - block * bits / 16;  // wraps where the block starts later
        if (offset > 4) continue;
        index[k][word] =
            static_cast<std::uint16_t>(offset < 4 ? block * 4 + offset : 32 + block * 4);
        used[k] |= 1u << word;
      }
    }
  }

  Vector pack(Vector blocks) const {
    const Vector s = _mm512_load_si512(shift);
    const Vector low = _mm512_sllv_epi64(blocks, s);
    const Vector high = _mm512_srlv_epi64(blocks, _mm512_sub_epi64(_mm512_set1_epi64(64), s));
    const auto part = [&](int k) {
      return _mm512_maskz_permutex2var_epi16(used[k], low, _mm512_load_si512(index[k]), high);
    };
    const Vector two = _mm512_or_si512(part(0), part(1));
    return bits < 16 ? _mm512_or_si512(two, part(2)) : two;
  }
};

/// The inverse for 16 blocks, to lanes in a given order of blocks.
struct Unpacker {
  alignas(64) std::uint16_t low[2][32];
  alignas(64) std::uint16_t high[2][32];
  alignas(64) std::uint64_t shift[2][8];
  std::uint32_t bits;

  Unpacker(std::uint32_t block_bits, const unsigned char (&block_of_lane)[16]) : bits(block_bits) {
    for (int lane = 0; lane < 16; ++lane) {
      const int half = wide_lane(lane) / 8;
      const int at = wide_lane(lane) % 8;
      const unsigned start = block_of_lane[lane] * bits;
      shift[half][at] = start % 16;
      for (unsigned k = 0; k < 4; ++k) {
        low[half][at * 4 + k] = static_cast<std::uint16_t>(start / 16 + k);
        high[half][at * 4 + k] = static_cast<std::uint16_t>(start / 16 + 4 + k);
      }
    }
  }

  Vector unpack(int half, Vector first, Vector second) const {
    const Vector s = _mm512_load_si512(shift[half]);
    const Vector l = _mm512_permutex2var_epi16(first, _mm512_load_si512(low[half]), second);
    const Vector h = _mm512_permutex2var_epi16(first, _mm512_load_si512(high[half]), second);
    const Vector both = _mm512_or_si512(
        _mm512_srlv_epi64(l, s), _mm512_sllv_epi64(h, _mm512_sub_epi64(_mm512_set1_epi64(64), s)));
    return _mm512_and_si512(both, _mm512_set1_epi64(static_cast<long long>(low_bits(bits))));
  }
};

// ---- Planes <-> bits ------------------------------------------------------------------------

/// A group between the element type's side and the stream's.
struct Group {
  Vector coefficient[4];  // negabinary, shifted left by `lead`, the upper 32 bits
  Vector lead;
  Vector exponent;
  __mmask16 coded;  // blocks that are not zero
};

Vector permute_words(const std::uint16_t* table, Vector index) {  // 64 entries
  return _mm512_permutex2var_epi16(_mm512_loadu_si512(table), index,
                                   _mm512_loadu_si512(table + 32));
}

template <int HeaderBits>
[[gnu::always_inline]] inline Wide encode_bits(Group& group, int budget) {
  Vector(&planes)[4] = group.coefficient;
  coefficients_to_planes(planes);
  const Vector header =
      _mm512_maskz_or_epi32(group.coded, _mm512_add_epi32(group.exponent, group.exponent), all(1));
  Wide bits = widen(header);
  Vector at = _mm512_add_epi32(group.lead, all(HeaderBits));
  __mmask16 open = group.coded;  // blocks whose planes are not yet verbatim
  Vector step = _mm512_setzero_si512();
  int done = 0;
  do {
    Vector next = planes[done / 8];
    if (done % 8 != 0) next = _mm512_srli_epi32(next, 16);
    next = _mm512_slli_epi32(next, 2);  // Tables::code has its code and its index 2 bits up
    Vector codes = _mm512_setzero_si512();
    Vector length = _mm512_setzero_si512();
    for (int plane = 0; plane < 4; ++plane) {
      step = permute_words(kTables.code, select(all(0x3C), next, step));
      const Vector verbatim = _mm512_and_si512(next, all(0x3C));
      const Vector code = _mm512_mask_and_epi32(verbatim, open, step, all(0x1FC));
      codes = _mm512_or_si512(codes, _mm512_sllv_epi32(code, length));
      length = _mm512_add_epi32(length, _mm512_mask_srli_epi32(all(4), open, step, 13));
      open = _mm512_mask_test_epi32_mask(open, step, all(3));
      next = _mm512_srli_epi32(next, 4);
    }
    const Wide code = widen(_mm512_srli_epi32(codes, 2));
    const Wide place = widen(at);
    bits.a = _mm512_or_si512(bits.a, _mm512_sllv_epi64(code.a, place.a));
    bits.b = _mm512_or_si512(bits.b, _mm512_sllv_epi64(code.b, place.b));
    at = _mm512_add_epi32(at, length);
    done += 4;
  } while (done < 32 && _mm512_mask_cmplt_epi32_mask(open, at, all(budget)) != 0);

  // The rest is verbatim, or beyond the budget. Shift counts out of range give zeros.
  const Wide first = widen(planes[0], planes[1]);
  const Wide second = widen(planes[2], planes[3]);
  const __m128i down = _mm_cvtsi64_si128(4 * done);
  const __m128i up = _mm_cvtsi64_si128(64 - 4 * done);
  const __m128i far = _mm_cvtsi64_si128(4 * done - 64);
  const Wide place = widen(at);
  const auto finish = [&](Vector word, Vector low, Vector high, Vector where) {
    const Vector rest = _mm512_ternarylogic_epi64(
        _mm512_srl_epi64(low, down), _mm512_sll_epi64(high, up), _mm512_srl_epi64(high, far), 0xFE);
    word = _mm512_or_si512(word, _mm512_sllv_epi64(rest, where));
    return _mm512_and_si512(
        word, _mm512_set1_epi64(static_cast<long long>(low_bits(static_cast<unsigned>(budget)))));
  };
  bits.a = finish(bits.a, first.a, second.a, place.a);
  bits.b = finish(bits.b, first.b, second.b, place.b);
  return bits;
}

/// Fills all of `group` from the bits of its blocks.
template <int HeaderBits>
[[gnu::always_inline]] inline void decode_bits(Wide bits, int budget, Group& group) {
  const Vector one = _mm512_set1_epi64(1);
  const Vector start = low_halves(bits);
  group.coded = _mm512_test_epi32_mask(start, all(1));
  group.exponent = _mm512_and_si512(_mm512_srli_epi32(start, 1), all((1 << (HeaderBits - 1)) - 1));
  // Drops the header, the empty planes before the first other one, and its group test.
  Wide skipped;
  const auto skip = [&](Vector& word, Vector& count) {
    word = _mm512_maskz_srli_epi64(_mm512_test_epi64_mask(word, one), word, HeaderBits);
    const Vector lowest = _mm512_and_si512(word, _mm512_sub_epi64(_mm512_setzero_si512(), word));
    count = _mm512_sub_epi64(_mm512_set1_epi64(64), _mm512_lzcnt_epi64(lowest));
    word = _mm512_srlv_epi64(word, count);
  };
  skip(bits.a, skipped.a);
  skip(bits.b, skipped.b);
  const Vector skipped_bits = low_halves(skipped);  // 0: no plane at all
  const __mmask16 some = _mm512_test_epi32_mask(skipped_bits, skipped_bits);
  group.lead = _mm512_sub_epi32(skipped_bits, all(1));
  const Vector left = _mm512_sub_epi32(all(budget - HeaderBits), skipped_bits);

  Vector window = low_halves(bits);
  // A block's first plane goes on with a scan, not with verbatim bits.
  const Vector first_table =
      _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(kTables.first)));
  Vector step = _mm512_permutexvar_epi16(_mm512_and_si512(window, all(7)), first_table);
  step = _mm512_maskz_and_epi32(some, step, all(0xFFFF));
  Vector x = _mm512_and_si512(step, all(15));
  Vector used = _mm512_and_si512(_mm512_srli_epi32(step, 4), all(7));
  window = _mm512_srlv_epi32(window, used);
  Vector mask = _mm512_srli_epi32(step, 11);
  Vector n = _mm512_setzero_si512();
  Vector before = _mm512_setzero_si512();  // bits used by earlier groups of planes
  alignas(64) Vector planes_by_4[8] = {};
  int done = 0;
  for (;;) {
    Vector planes = _mm512_setzero_si512();
    for (int plane = 0; plane < 4; ++plane) {
      if (plane != 0 || done != 0) {
        x = _mm512_andnot_si512(_mm512_sllv_epi32(all(-1), n), window);
        window = _mm512_srlv_epi32(window, n);
        used = _mm512_add_epi32(used, n);
      }
      step = permute_words(kTables.step, and_or(window, mask, _mm512_add_epi32(mask, all(1))));
      const Vector length = _mm512_and_si512(_mm512_srli_epi32(step, 4), all(7));
      x = and_or(step, all(15), x);
      window = _mm512_srlv_epi32(window, length);
      used = _mm512_add_epi32(used, length);
      n = _mm512_and_si512(_mm512_srli_epi32(step, 8), all(7));
      mask = _mm512_srli_epi32(step, 11);
      // See decode_planes(): a scan that the budget cuts.
      const Vector over = _mm512_subs_epu16(used, left);
      x = and_or(x, all(7), _mm512_srlv_epi32(_mm512_and_si512(x, all(8)), over));
      planes = _mm512_or_si512(planes, _mm512_sllv_epi32(x, all(4 * plane)));
    }
    planes_by_4[done / 4] = planes;
    done += 4;
    const Wide shift = widen(_mm512_sub_epi32(used, before));
    before = used;
    bits.a = _mm512_srlv_epi64(bits.a, shift.a);
    bits.b = _mm512_srlv_epi64(bits.b, shift.b);
    window = low_halves(bits);
    const Vector rest = _mm512_or_si512(window, high_halves(bits));
    const __mmask16 open = _mm512_cmplt_epi32_mask(n, all(4));
    if (done == 32 || _mm512_mask_test_epi32_mask(open, rest, rest) == 0) break;
  }

  // What is left is verbatim planes, or nothing.
  const auto word = [&](int i) {
    return _mm512_or_si512(planes_by_4[2 * i], _mm512_slli_epi32(planes_by_4[2 * i + 1], 16));
  };
  Wide first = widen(word(0), word(1));
  Wide second = widen(word(2), word(3));
  const __m128i up = _mm_cvtsi64_si128(4 * done);
  const __m128i down = _mm_cvtsi64_si128(64 - 4 * done);
  const __m128i far = _mm_cvtsi64_si128(4 * done - 64);
  const auto append = [&](Vector& low, Vector& high, Vector rest) {
    low = _mm512_or_si512(low, _mm512_sll_epi64(rest, up));
    high = _mm512_ternarylogic_epi64(high, _mm512_srl_epi64(rest, down),
                                     _mm512_sll_epi64(rest, far), 0xFE);
  };
  append(first.a, second.a, bits.a);
  append(first.b, second.b, bits.b);
  group.coefficient[0] = low_halves(first);
  group.coefficient[1] = high_halves(first);
  group.coefficient[2] = low_halves(second);
  group.coefficient[3] = high_halves(second);
  planes_to_coefficients(group.coefficient);
}

}  // namespace
}  // namespace mpress::codec::zfp::MPRESS_ISA
