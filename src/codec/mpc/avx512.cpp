// GCC's own intrinsics start from undefined registers, and it warns of them (GCC bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#include "codec/mpc/simd.hpp"

namespace mpress::codec::mpc::MPRESS_ISA {
namespace {

// 8 x 8 bits of every 64-bit lane, as transpose_bits().
template <unsigned Shift>
__m512i swap_bits(__m512i x, long long bits) {
  // t = (x ^ x >> Shift) & bits; x ^ t ^ t << Shift
  const __m512i t =
      _mm512_ternarylogic_epi64(x, _mm512_srli_epi64(x, Shift), _mm512_set1_epi64(bits), 0x28);
  return _mm512_ternarylogic_epi64(x, t, _mm512_slli_epi64(t, Shift), 0x96);
}

__m512i transpose_lanes(__m512i x) {
  x = swap_bits<7>(x, 0x00AA00AA00AA00AA);
  x = swap_bits<14>(x, 0x0000CCCC0000CCCC);
  return swap_bits<28>(x, 0x00000000F0F0F0F0);
}

struct Bits {
  using R = __m512i;
  static R and_(R a, R b) { return _mm512_and_si512(a, b); }
  static R or_(R a, R b) { return _mm512_or_si512(a, b); }
  static R xor_(R a, R b) { return _mm512_xor_si512(a, b); }
  static R andnot(R a, R b) { return _mm512_andnot_si512(a, b); }
  static __m128i count(unsigned n) { return _mm_cvtsi32_si128(static_cast<int>(n)); }
};

struct V32 : Bits {
  using Word = std::uint32_t;
  static constexpr unsigned lanes = 16;
  static constexpr unsigned step = 1;

  static R load(const Word* p) { return _mm512_loadu_si512(p); }
  static void store(Word* p, R a) { _mm512_storeu_si512(p, a); }
  static R set1(Word a) { return _mm512_set1_epi32(static_cast<int>(a)); }
  static R add(R a, R b) { return _mm512_add_epi32(a, b); }
  static R sub(R a, R b) { return _mm512_sub_epi32(a, b); }
  static R umin(R a, R b) { return _mm512_min_epu32(a, b); }
  static R umax(R a, R b) { return _mm512_max_epu32(a, b); }
  static R shl1(R a) { return _mm512_add_epi32(a, a); }
  static R shr1(R a) { return _mm512_srli_epi32(a, 1); }
  static R shl(R a, unsigned n) { return _mm512_sll_epi32(a, count(n)); }
  static R shr(R a, unsigned n) { return _mm512_srl_epi32(a, count(n)); }
  static R sign(R a) { return _mm512_srai_epi32(a, 31); }
  static R low(R a) { return _mm512_srai_epi32(_mm512_slli_epi32(a, 31), 31); }
  static R low_to_sign(R a) { return _mm512_slli_epi32(a, 31); }
  static R add_nonzero(R a, R b) {
    return _mm512_maskz_add_epi32(_mm512_test_epi32_mask(a, a), a, b);
  }
  template <class Op>
  static Word fold(R a, Op op) {
    a = op(a, _mm512_shuffle_i64x2(a, a, _MM_SHUFFLE(1, 0, 3, 2)));
    a = op(a, _mm512_shuffle_i64x2(a, a, _MM_SHUFFLE(2, 3, 0, 1)));
    a = op(a, _mm512_shuffle_epi32(a, _MM_PERM_BADC));
    a = op(a, _mm512_shuffle_epi32(a, _MM_PERM_CDAB));
    return static_cast<Word>(_mm512_cvtsi512_si32(a));
  }
  static R sum_lanes(R a) {
    const R zero = _mm512_setzero_si512();
    a = add(a, _mm512_bslli_epi128(a, 4));
    a = add(a, _mm512_bslli_epi128(a, 8));
    // The sum of each 128-bit lane, moved up one lane; then those of two lanes, moved up two.
    R t = _mm512_shuffle_epi32(a, _MM_PERM_DDDD);
    a = add(a, _mm512_alignr_epi64(t, zero, 6));
    t = _mm512_shuffle_epi32(a, _MM_PERM_DDDD);
    return add(a, _mm512_maskz_shuffle_i32x4(0xFF00, t, t, _MM_SHUFFLE(1, 0, 0, 0)));
  }
  static R last(R a) { return _mm512_permutexvar_epi32(_mm512_set1_epi32(15), a); }

  static void block_widths(const R* v, std::uint8_t* widths) {
    // Registers a..h of two blocks each: fold elements within 128-bit lanes, then lanes.
    R pair[4], quad[2];
    for (unsigned i = 0; i < 4; ++i) {
      pair[i] = or_(_mm512_unpacklo_epi32(v[2 * i], v[2 * i + 1]),
                    _mm512_unpackhi_epi32(v[2 * i], v[2 * i + 1]));
    }
    for (unsigned i = 0; i < 2; ++i) {
      quad[i] = or_(_mm512_unpacklo_epi64(pair[2 * i], pair[2 * i + 1]),
                    _mm512_unpackhi_epi64(pair[2 * i], pair[2 * i + 1]));
    }
    const R any = or_(_mm512_shuffle_i32x4(quad[0], quad[1], _MM_SHUFFLE(2, 0, 2, 0)),
                      _mm512_shuffle_i32x4(quad[0], quad[1], _MM_SHUFFLE(3, 1, 3, 1)));
    const R width = _mm512_sub_epi32(_mm512_set1_epi32(32), _mm512_lzcnt_epi32(any));
    // Lanes hold the first blocks of a..d, the second of a..d, and so on for e..h.
    const __m128i bytes =
        _mm_shuffle_epi8(_mm512_cvtepi32_epi8(width),
                         _mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15));
    _mm_store_si128(reinterpret_cast<__m128i*>(widths), bytes);
  }

  // Byte j of four elements next to each other; its own inverse.
  static R gather_bytes(R a) {
    return _mm512_shuffle_epi8(a, _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2,
                                                                       6, 10, 14, 3, 7, 11, 15)));
  }

  static unsigned char* store_planes(const R* r, const std::uint8_t* widths, unsigned char* out) {
    const R order = _mm512_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
    const R planes = transpose_lanes(_mm512_permutexvar_epi32(order, gather_bytes(*r)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm512_castsi512_si256(planes));
    out += widths[0];
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm512_extracti64x4_epi64(planes, 1));
    return out + widths[1];
  }

  static const unsigned char* load_planes(const unsigned char* in, const std::uint8_t* widths,
                                          R* r) {
    const __m256i first = _mm256_maskz_loadu_epi8(_bzhi_u32(~0u, widths[0]), in);
    in += widths[0];
    const __m256i second = _mm256_maskz_loadu_epi8(_bzhi_u32(~0u, widths[1]), in);
    const R planes = _mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1);
    const R order = _mm512_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
    *r = gather_bytes(_mm512_permutexvar_epi32(order, transpose_lanes(planes)));
    return in + widths[1];
  }
};

struct V64 : Bits {
  using Word = std::uint64_t;
  static constexpr unsigned lanes = 8;
  static constexpr unsigned step = 1;

  static R load(const Word* p) { return _mm512_loadu_si512(p); }
  static void store(Word* p, R a) { _mm512_storeu_si512(p, a); }
  static R set1(Word a) { return _mm512_set1_epi64(static_cast<long long>(a)); }
  static R add(R a, R b) { return _mm512_add_epi64(a, b); }
  static R sub(R a, R b) { return _mm512_sub_epi64(a, b); }
  static R umin(R a, R b) { return _mm512_min_epu64(a, b); }
  static R umax(R a, R b) { return _mm512_max_epu64(a, b); }
  static R shl1(R a) { return _mm512_add_epi64(a, a); }
  static R shr1(R a) { return _mm512_srli_epi64(a, 1); }
  static R shl(R a, unsigned n) { return _mm512_sll_epi64(a, count(n)); }
  static R shr(R a, unsigned n) { return _mm512_srl_epi64(a, count(n)); }
  static R sign(R a) { return _mm512_srai_epi64(a, 63); }
  static R low(R a) { return _mm512_srai_epi64(_mm512_slli_epi64(a, 63), 63); }
  static R low_to_sign(R a) { return _mm512_slli_epi64(a, 63); }
  static R add_nonzero(R a, R b) {
    return _mm512_maskz_add_epi64(_mm512_test_epi64_mask(a, a), a, b);
  }
  template <class Op>
  static Word fold(R a, Op op) {
    a = op(a, _mm512_shuffle_i64x2(a, a, _MM_SHUFFLE(1, 0, 3, 2)));
    a = op(a, _mm512_shuffle_i64x2(a, a, _MM_SHUFFLE(2, 3, 0, 1)));
    a = op(a, _mm512_shuffle_epi32(a, _MM_PERM_BADC));
    return static_cast<Word>(_mm_cvtsi128_si64(_mm512_castsi512_si128(a)));
  }
  static R sum_lanes(R a) {
    const R zero = _mm512_setzero_si512();
    a = add(a, _mm512_alignr_epi64(a, zero, 7));
    a = add(a, _mm512_alignr_epi64(a, zero, 6));
    return add(a, _mm512_alignr_epi64(a, zero, 4));
  }
  static R last(R a) { return _mm512_permutexvar_epi64(_mm512_set1_epi64(7), a); }

  static void block_widths(const R* v, std::uint8_t* widths) {
    R pair[8], quad[4];
    for (unsigned i = 0; i < 8; ++i) {
      pair[i] = or_(_mm512_unpacklo_epi64(v[2 * i], v[2 * i + 1]),
                    _mm512_unpackhi_epi64(v[2 * i], v[2 * i + 1]));
    }
    for (unsigned i = 0; i < 4; ++i) quad[i] = fold_lanes(pair[2 * i], pair[2 * i + 1]);
    for (unsigned i = 0; i < 2; ++i) {
      const R any = fold_lanes(quad[2 * i], quad[2 * i + 1]);
      const R width = _mm512_sub_epi64(_mm512_set1_epi64(64), _mm512_lzcnt_epi64(any));
      _mm_storel_epi64(reinterpret_cast<__m128i*>(widths + 8 * i), _mm512_cvtepi64_epi8(width));
    }
  }

  // Neighbouring 128-bit lanes of a, then of b, or-ed together.
  static R fold_lanes(R a, R b) {
    return or_(_mm512_shuffle_i64x2(a, b, _MM_SHUFFLE(2, 0, 2, 0)),
               _mm512_shuffle_i64x2(a, b, _MM_SHUFFLE(3, 1, 3, 1)));
  }

  static unsigned char* store_planes(const R* r, const std::uint8_t* widths, unsigned char* out) {
    const R pairs =
        _mm512_shuffle_epi8(*r, _mm512_broadcast_i32x4(_mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4,
                                                                     12, 5, 13, 6, 14, 7, 15)));
    _mm512_storeu_si512(out, transpose_lanes(_mm512_permutexvar_epi16(word_order(), pairs)));
    return out + widths[0];
  }

  static const unsigned char* load_planes(const unsigned char* in, const std::uint8_t* widths,
                                          R* r) {
    const R planes = _mm512_maskz_loadu_epi8(_bzhi_u64(~0ull, widths[0]), in);
    const R bytes = transpose_lanes(planes);
    const R lo = _mm512_permutexvar_epi16(inverse_word_order(), bytes);
    *r = _mm512_shuffle_epi8(lo, _mm512_broadcast_i32x4(_mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1,
                                                                      3, 5, 7, 9, 11, 13, 15)));
    return in + widths[0];
  }

  // Word 8 * lane + j, holding byte j of two elements, to word 4 * j + lane; and back.
  static R word_order() {
    alignas(64) static constexpr std::uint16_t order[32] = {
        0, 8,  16, 24, 1, 9,  17, 25, 2, 10, 18, 26, 3, 11, 19, 27,
        4, 12, 20, 28, 5, 13, 21, 29, 6, 14, 22, 30, 7, 15, 23, 31};
    return _mm512_load_si512(order);
  }
  static R inverse_word_order() {
    alignas(64) static constexpr std::uint16_t order[32] = {
        0, 4, 8,  12, 16, 20, 24, 28, 1, 5, 9,  13, 17, 21, 25, 29,
        2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19, 23, 27, 31};
    return _mm512_load_si512(order);
  }
};

}  // namespace

extern const UnitCodec<std::uint32_t> unit32;
extern const UnitCodec<std::uint64_t> unit64;
const UnitCodec<std::uint32_t> unit32{Unit<Kernel<V32>>::encode, Unit<Kernel<V32>>::decode};
const UnitCodec<std::uint64_t> unit64{Unit<Kernel<V64>>::encode, Unit<Kernel<V64>>::decode};

}  // namespace mpress::codec::mpc::MPRESS_ISA
