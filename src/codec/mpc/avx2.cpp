#include "codec/mpc/simd.hpp"

namespace mpress::codec::mpc::MPRESS_ISA {
namespace {

// 8 x 8 bits of every 64-bit lane, as transpose_bits().
template <int Shift>
__m256i swap_bits(__m256i x, long long bits) {
  const __m256i t =
      _mm256_and_si256(_mm256_xor_si256(x, _mm256_srli_epi64(x, Shift)), _mm256_set1_epi64x(bits));
  return _mm256_xor_si256(x, _mm256_xor_si256(t, _mm256_slli_epi64(t, Shift)));
}

__m256i transpose_lanes(__m256i x) {
  x = swap_bits<7>(x, 0x00AA00AA00AA00AA);
  x = swap_bits<14>(x, 0x0000CCCC0000CCCC);
  return swap_bits<28>(x, 0x00000000F0F0F0F0);
}

// Keeps the first `n` bytes (n <= 64) of those at `in`.
alignas(64) constexpr unsigned char kKeep[128] = {
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};

__m256i load_bytes(const unsigned char* in, unsigned at, unsigned n) {
  const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + at));
  const __m256i keep = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kKeep + 64 - n + at));
  return _mm256_and_si256(x, keep);
}

struct Bits {
  using R = __m256i;
  static R and_(R a, R b) { return _mm256_and_si256(a, b); }
  static R or_(R a, R b) { return _mm256_or_si256(a, b); }
  static R xor_(R a, R b) { return _mm256_xor_si256(a, b); }
  static R andnot(R a, R b) { return _mm256_andnot_si256(a, b); }
  static __m128i count(unsigned n) { return _mm_cvtsi32_si128(static_cast<int>(n)); }
};

struct V32 : Bits {
  using Word = std::uint32_t;
  static constexpr unsigned lanes = 8;
  static constexpr unsigned step = 1;

  static R load(const Word* p) { return _mm256_loadu_si256(reinterpret_cast<const R*>(p)); }
  static void store(Word* p, R a) { _mm256_storeu_si256(reinterpret_cast<R*>(p), a); }
  static R set1(Word a) { return _mm256_set1_epi32(static_cast<int>(a)); }
  static R add(R a, R b) { return _mm256_add_epi32(a, b); }
  static R sub(R a, R b) { return _mm256_sub_epi32(a, b); }
  static R umin(R a, R b) { return _mm256_min_epu32(a, b); }
  static R umax(R a, R b) { return _mm256_max_epu32(a, b); }
  static R shl1(R a) { return _mm256_add_epi32(a, a); }
  static R shr1(R a) { return _mm256_srli_epi32(a, 1); }
  static R shl(R a, unsigned n) { return _mm256_sll_epi32(a, count(n)); }
  static R shr(R a, unsigned n) { return _mm256_srl_epi32(a, count(n)); }
  static R sign(R a) { return _mm256_srai_epi32(a, 31); }
  static R low(R a) { return _mm256_srai_epi32(_mm256_slli_epi32(a, 31), 31); }
  static R low_to_sign(R a) { return _mm256_slli_epi32(a, 31); }
  static R add_nonzero(R a, R b) {
    return _mm256_andnot_si256(_mm256_cmpeq_epi32(a, _mm256_setzero_si256()), add(a, b));
  }
  template <class Op>
  static Word fold(R a, Op op) {
    a = op(a, _mm256_permute2x128_si256(a, a, 0x01));
    a = op(a, _mm256_shuffle_epi32(a, 0x4E));
    a = op(a, _mm256_shuffle_epi32(a, 0xB1));
    return static_cast<Word>(_mm256_cvtsi256_si32(a));
  }
  static R sum_lanes(R a) {
    a = add(a, _mm256_slli_si256(a, 4));
    a = add(a, _mm256_slli_si256(a, 8));
    return add(a, _mm256_shuffle_epi32(_mm256_permute2x128_si256(a, a, 0x08), 0xFF));
  }
  static R last(R a) { return _mm256_permutevar8x32_epi32(a, _mm256_set1_epi32(7)); }

  static void block_widths(const R* v, std::uint8_t* widths) {
    alignas(32) Word any[kGroupBlocks];
    for (unsigned i = 0; i < 2; ++i) {
      R quad[2];
      for (unsigned j = 0; j < 2; ++j) {
        const R* const b = v + 8 * i + 4 * j;
        const R ab = or_(_mm256_unpacklo_epi32(b[0], b[1]), _mm256_unpackhi_epi32(b[0], b[1]));
        const R cd = or_(_mm256_unpacklo_epi32(b[2], b[3]), _mm256_unpackhi_epi32(b[2], b[3]));
        quad[j] = or_(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd));
      }
      store(any + 8 * i, or_(_mm256_permute2x128_si256(quad[0], quad[1], 0x20),
                             _mm256_permute2x128_si256(quad[0], quad[1], 0x31)));
    }
    for (unsigned b = 0; b < kGroupBlocks; ++b) {
      widths[b] = static_cast<std::uint8_t>(32 - _lzcnt_u32(any[b]));
    }
  }

  // Byte j of four elements next to each other; its own inverse.
  static R gather_bytes(R a) {
    return _mm256_shuffle_epi8(a, _mm256_broadcastsi128_si256(_mm_setr_epi8(
                                      0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)));
  }

  static unsigned char* store_planes(const R* r, const std::uint8_t* widths, unsigned char* out) {
    const R order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const R bytes = _mm256_permutevar8x32_epi32(gather_bytes(*r), order);
    _mm256_storeu_si256(reinterpret_cast<R*>(out), transpose_lanes(bytes));
    return out + widths[0];
  }

  static const unsigned char* load_planes(const unsigned char* in, const std::uint8_t* widths,
                                          R* r) {
    const R bytes = transpose_lanes(load_bytes(in, 0, widths[0]));
    const R order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
    *r = gather_bytes(_mm256_permutevar8x32_epi32(bytes, order));
    return in + widths[0];
  }
};

struct V64 : Bits {
  using Word = std::uint64_t;
  static constexpr unsigned lanes = 4;
  static constexpr unsigned step = 2;

  static R load(const Word* p) { return _mm256_loadu_si256(reinterpret_cast<const R*>(p)); }
  static void store(Word* p, R a) { _mm256_storeu_si256(reinterpret_cast<R*>(p), a); }
  static R set1(Word a) { return _mm256_set1_epi64x(static_cast<long long>(a)); }
  static R add(R a, R b) { return _mm256_add_epi64(a, b); }
  static R sub(R a, R b) { return _mm256_sub_epi64(a, b); }
  static R above(R a, R b) {
    const R sign = set1(Layout<Word>::sign);
    return _mm256_cmpgt_epi64(xor_(a, sign), xor_(b, sign));
  }
  static R umin(R a, R b) { return _mm256_blendv_epi8(a, b, above(a, b)); }
  static R umax(R a, R b) { return _mm256_blendv_epi8(b, a, above(a, b)); }
  static R shl1(R a) { return _mm256_add_epi64(a, a); }
  static R shr1(R a) { return _mm256_srli_epi64(a, 1); }
  static R shl(R a, unsigned n) { return _mm256_sll_epi64(a, count(n)); }
  static R shr(R a, unsigned n) { return _mm256_srl_epi64(a, count(n)); }
  static R sign(R a) { return _mm256_cmpgt_epi64(_mm256_setzero_si256(), a); }
  static R low(R a) {
    return sub(_mm256_setzero_si256(), _mm256_and_si256(a, _mm256_set1_epi64x(1)));
  }
  static R low_to_sign(R a) { return _mm256_slli_epi64(a, 63); }
  static R add_nonzero(R a, R b) {
    return _mm256_andnot_si256(_mm256_cmpeq_epi64(a, _mm256_setzero_si256()), add(a, b));
  }
  template <class Op>
  static Word fold(R a, Op op) {
    a = op(a, _mm256_permute2x128_si256(a, a, 0x01));
    a = op(a, _mm256_shuffle_epi32(a, 0x4E));
    return static_cast<Word>(_mm_cvtsi128_si64(_mm256_castsi256_si128(a)));
  }
  static R sum_lanes(R a) {
    a = add(a, _mm256_slli_si256(a, 8));
    const R low_half = _mm256_permute2x128_si256(a, a, 0x08);
    return add(a, _mm256_unpackhi_epi64(low_half, low_half));
  }
  static R last(R a) { return _mm256_permute4x64_epi64(a, 0xFF); }

  static void block_widths(const R* v, std::uint8_t* widths) {
    alignas(32) Word any[kGroupBlocks];
    for (unsigned i = 0; i < kGroupBlocks; i += 4) {
      const R* const b = v + i;
      const R ab = or_(_mm256_unpacklo_epi64(b[0], b[1]), _mm256_unpackhi_epi64(b[0], b[1]));
      const R cd = or_(_mm256_unpacklo_epi64(b[2], b[3]), _mm256_unpackhi_epi64(b[2], b[3]));
      store(any + i,
            or_(_mm256_permute2x128_si256(ab, cd, 0x20), _mm256_permute2x128_si256(ab, cd, 0x31)));
    }
    for (unsigned b = 0; b < kGroupBlocks; ++b) {
      widths[b] = static_cast<std::uint8_t>(64 - _lzcnt_u64(any[b]));
    }
  }

  static unsigned char* store_planes(const R* r, const std::uint8_t* widths, unsigned char* out) {
    // Bytes j of two elements, then of the first four and the last four, then of all eight.
    const R pair = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
    const R a = _mm256_shuffle_epi8(r[0], pair);
    const R b = _mm256_shuffle_epi8(r[1], pair);
    const R even = _mm256_permute2x128_si256(a, b, 0x20);
    const R odd = _mm256_permute2x128_si256(a, b, 0x31);
    const R order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const R low = _mm256_permutevar8x32_epi32(_mm256_unpacklo_epi16(even, odd), order);
    const R high = _mm256_permutevar8x32_epi32(_mm256_unpackhi_epi16(even, odd), order);
    _mm256_storeu_si256(reinterpret_cast<R*>(out), transpose_lanes(low));
    _mm256_storeu_si256(reinterpret_cast<R*>(out + 32), transpose_lanes(high));
    return out + widths[0];
  }

  static const unsigned char* load_planes(const unsigned char* in, const std::uint8_t* widths,
                                          R* r) {
    const R low = transpose_lanes(load_bytes(in, 0, widths[0]));
    const R high = transpose_lanes(load_bytes(in, 32, widths[0]));
    // Quads of bytes 0..3 and 4..7: of elements 0..3 in the low half, 4..7 in the high half.
    const R halves = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
    const R a = _mm256_permutevar8x32_epi32(low, halves);
    const R b = _mm256_permutevar8x32_epi32(high, halves);
    const R gather = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    const R lower = _mm256_shuffle_epi8(a, gather);
    const R upper = _mm256_shuffle_epi8(b, gather);
    const R even = _mm256_unpacklo_epi32(lower, upper);  // elements 0, 1 and 4, 5
    const R odd = _mm256_unpackhi_epi32(lower, upper);   // elements 2, 3 and 6, 7
    r[0] = _mm256_permute2x128_si256(even, odd, 0x20);
    r[1] = _mm256_permute2x128_si256(even, odd, 0x31);
    return in + widths[0];
  }
};

}  // namespace

extern const UnitCodec<std::uint32_t> unit32;
extern const UnitCodec<std::uint64_t> unit64;
const UnitCodec<std::uint32_t> unit32{Unit<Kernel<V32>>::encode, Unit<Kernel<V32>>::decode};
const UnitCodec<std::uint64_t> unit64{Unit<Kernel<V64>>::encode, Unit<Kernel<V64>>::decode};

}  // namespace mpress::codec::mpc::MPRESS_ISA
