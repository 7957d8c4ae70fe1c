// Elements of `zfp` in AVX2 lanes: fixed point and decorrelation, 8 blocks at once. For
// zfp/avx2.cpp only.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "codec/zfp/format.hpp"
#include "codec/zfp/kernels.hpp"

namespace mpress::codec::zfp::MPRESS_ISA {
namespace {

// A part of a group is 8 blocks. Like a group it ends at a byte, whatever a block's bits.
constexpr std::size_t kPart = 8;

using Register = __m256i;

Register load(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
void store(void* to, Register v) { _mm256_storeu_si256(static_cast<__m256i*>(to), v); }

Register set(int value) { return _mm256_set1_epi32(value); }
Register any_of(Register x, Register y) { return _mm256_or_si256(x, y); }
Register both_of(Register x, Register y) { return _mm256_and_si256(x, y); }

/// A part of Wide: eight 64-bit lanes.
struct Pair {
  Register low, high;
};
Pair widen(Register low, Register high) {
  return {_mm256_unpacklo_epi32(low, high), _mm256_unpackhi_epi32(low, high)};
}
Pair widen(Register v) { return widen(v, _mm256_setzero_si256()); }
Register low_halves(const Pair& w) {
  return _mm256_castps_si256(
      _mm256_shuffle_ps(_mm256_castsi256_ps(w.low), _mm256_castsi256_ps(w.high), 0x88));
}
Register high_halves(const Pair& w) {
  return _mm256_castps_si256(
      _mm256_shuffle_ps(_mm256_castsi256_ps(w.low), _mm256_castsi256_ps(w.high), 0xDD));
}

/// Half of a Group.
struct Part {
  Register coefficient[4];
  Register lead, exponent, coded;
};

// ---- Elements <-> coefficients --------------------------------------------------------------

// Arithmetic on lanes of the element type's width.
template <typename Element>
struct Lanes;

template <>
struct Lanes<float> {
  static Register add(Register a, Register b) { return _mm256_add_epi32(a, b); }
  static Register sub(Register a, Register b) { return _mm256_sub_epi32(a, b); }
  static Register half(Register a) { return _mm256_srai_epi32(a, 1); }
};

template <>
struct Lanes<double> {
  static Register add(Register a, Register b) { return _mm256_add_epi64(a, b); }
  static Register sub(Register a, Register b) { return _mm256_sub_epi64(a, b); }
  static Register half(Register a) {
    const Register sign = _mm256_set1_epi64x(static_cast<long long>(1ull << 63));
    return any_of(_mm256_srli_epi64(a, 1), both_of(a, sign));
  }
};

Register negabinary() { return set(static_cast<int>(0xAAAAAAAA)); }

template <typename Element>
void to_negabinary(Register (&v)[4]) {  // lift() and the conversion
  using L = Lanes<Element>;
  Register x = v[0], y = v[1], z = v[2], w = v[3];
  x = L::half(L::add(x, w)), w = L::sub(w, x);
  z = L::half(L::add(z, y)), y = L::sub(y, z);
  x = L::half(L::add(x, z)), z = L::sub(z, x);
  w = L::half(L::add(w, y)), y = L::sub(y, w);
  w = L::add(w, L::half(y)), y = L::sub(y, L::half(w));
  v[0] = x, v[1] = y, v[2] = z, v[3] = w;
  for (Register& c : v) c = _mm256_xor_si256(L::add(c, negabinary()), negabinary());
}

template <typename Element>
void from_negabinary(Register (&v)[4]) {
  using L = Lanes<Element>;
  for (Register& c : v) c = L::sub(_mm256_xor_si256(c, negabinary()), negabinary());
  Register x = v[0], y = v[1], z = v[2], w = v[3];
  y = L::add(y, L::half(w)), w = L::sub(w, L::half(y));
  y = L::add(y, w), w = L::add(w, L::sub(w, y));
  z = L::add(z, x), x = L::add(x, L::sub(x, z));
  y = L::add(y, z), z = L::add(z, L::sub(z, y));
  w = L::add(w, x), x = L::add(x, L::sub(x, w));
  v[0] = x, v[1] = y, v[2] = z, v[3] = w;
}

/// Leading zeros of 32-bit lanes, more than 31 for 0.
Register leading_zeros(Register v) {
  // A one above a one cannot round the conversion up to the next power of two. A lane whose top
  // bit is set converts to a negative number, whose sign makes the difference negative.
  const Register top = _mm256_andnot_si256(_mm256_srli_epi32(v, 1), v);
  const Register bits = _mm256_castps_si256(_mm256_cvtepi32_ps(top));
  return _mm256_max_epi32(_mm256_sub_epi32(set(158), _mm256_srli_epi32(bits, 23)),
                          _mm256_setzero_si256());
}

/// Keeps the blocks of a group whose lanes are in `lanes`.
template <typename Element>
void except(ExceptionList& exceptions, unsigned lanes, const unsigned char* block_of_lane,
            std::size_t first_block, const unsigned char* in) {
  unsigned blocks = 0;  // in ascending order, which that of lanes is not
  for (int lane = 0; lane < 8; ++lane) blocks |= (lanes >> lane & 1) << block_of_lane[lane];
  for (; blocks != 0; blocks &= blocks - 1) {
    const auto block = static_cast<unsigned>(__builtin_ctz(blocks));
    exceptions.add(first_block + block, in + block * kBlock * sizeof(Element), kBlock);
  }
}

template <typename Element>
struct Side;

template <>
struct Side<float> {
  static constexpr int kHeaderBits = Traits<float>::kHeaderBits;
  /// Transposing 4x4 elements inside 128 bits leaves the blocks in this order ...
  static constexpr unsigned char kBlockOfLane[8] = {0, 2, 4, 6, 1, 3, 5, 7};
  /// ... and each half of Pair in the order 0, 2, 1, 3, which this exchanges for the natural one.
  static Register in_order(Register v) { return _mm256_permute4x64_epi64(v, 0xD8); }

  static void transpose(Register (&v)[4]) {
    const Register a = _mm256_unpacklo_epi32(v[0], v[1]), b = _mm256_unpackhi_epi32(v[0], v[1]);
    const Register c = _mm256_unpacklo_epi32(v[2], v[3]), d = _mm256_unpackhi_epi32(v[2], v[3]);
    v[0] = _mm256_unpacklo_epi64(a, c), v[1] = _mm256_unpackhi_epi64(a, c);
    v[2] = _mm256_unpacklo_epi64(b, d), v[3] = _mm256_unpackhi_epi64(b, d);
  }

  /// Multiplies by 2^k in two steps: 2^k alone may be no normal number.
  struct Scale {
    __m256 first, second;
    explicit Scale(Register k) {
      const Register half = _mm256_srai_epi32(k, 1);
      first = power_of_two(half);
      second = power_of_two(_mm256_sub_epi32(k, half));
    }
    static __m256 power_of_two(Register k) {
      return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(k, set(127)), 23));
    }
    __m256 apply(__m256 x) const { return _mm256_mul_ps(_mm256_mul_ps(x, first), second); }
  };

  /// Returns the lanes whose block is not finite; they come out as zero blocks.
  static unsigned load_part(const unsigned char* in, Part& part) {
    Register(&v)[4] = part.coefficient;
    for (int i = 0; i < 4; ++i) v[i] = load(in + 32 * i);
    transpose(v);
    Register largest = _mm256_setzero_si256();
    for (const Register& x : v) {
      largest = _mm256_max_epi32(largest, both_of(x, set(0x7FFFFFFF)));
    }
    const Register finite = _mm256_cmpgt_epi32(set(0x7F800000), largest);
    const int lanes = _mm256_movemask_ps(_mm256_castsi256_ps(finite));
    if (lanes != 0xFF) [[unlikely]] {
      for (Register& x : v) x = both_of(x, finite);
      largest = both_of(largest, finite);
    }
    part.coded = _mm256_cmpgt_epi32(largest, _mm256_setzero_si256());
    if (_mm256_testz_si256(part.coded, part.coded) != 0) {
      for (Register& x : v) x = part.coded;  // negative zeros too
      part.lead = part.exponent = part.coded;
      return static_cast<unsigned>(lanes) ^ 0xFF;
    }
    part.exponent = _mm256_add_epi32(_mm256_srli_epi32(largest, 23), set(1));
    const Scale scale(_mm256_sub_epi32(set(157), part.exponent));
    for (Register& x : v) x = _mm256_cvttps_epi32(scale.apply(_mm256_castsi256_ps(x)));
    to_negabinary<float>(v);
    part.lead = leading_zeros(any_of(any_of(v[0], v[1]), any_of(v[2], v[3])));
    for (Register& x : v) x = _mm256_sllv_epi32(x, part.lead);
    return static_cast<unsigned>(lanes) ^ 0xFF;
  }

  static void store_part(Part& part, unsigned char* out) {
    Register(&v)[4] = part.coefficient;
    for (Register& x : v) x = _mm256_srlv_epi32(x, part.lead);
    from_negabinary<float>(v);
    const Scale scale(_mm256_sub_epi32(part.exponent, set(157)));
    for (Register& x : v) {
      x = both_of(_mm256_castps_si256(scale.apply(_mm256_cvtepi32_ps(x))), part.coded);
    }
    transpose(v);
    for (int i = 0; i < 4; ++i) store(out + 32 * i, v[i]);
  }
};

template <>
struct Side<double> {
  static constexpr int kHeaderBits = Traits<double>::kHeaderBits;
  /// The order that makes the halves of Pair blocks 0..3 and 4..7.
  static constexpr unsigned char kBlockOfLane[8] = {0, 1, 4, 5, 2, 3, 6, 7};
  static Register in_order(Register v) { return v; }

  static void transpose(Register (&v)[4]) {
    const Register a = _mm256_unpacklo_epi64(v[0], v[1]), b = _mm256_unpackhi_epi64(v[0], v[1]);
    const Register c = _mm256_unpacklo_epi64(v[2], v[3]), d = _mm256_unpackhi_epi64(v[2], v[3]);
    v[0] = _mm256_permute2x128_si256(a, c, 0x20), v[1] = _mm256_permute2x128_si256(b, d, 0x20);
    v[2] = _mm256_permute2x128_si256(a, c, 0x31), v[3] = _mm256_permute2x128_si256(b, d, 0x31);
  }

  static Register all64(std::uint64_t value) {
    return _mm256_set1_epi64x(static_cast<long long>(value));
  }

  struct Half {  // 4 blocks
    Register v[4], exponent, finite;
  };

  static void load_half(const unsigned char* in, Half& half) {
    Register(&v)[4] = half.v;
    for (int i = 0; i < 4; ++i) v[i] = load(in + 32 * i);
    transpose(v);
    const Register magnitude = all64(~0ull >> 1);
    Register largest = _mm256_setzero_si256();
    for (const Register& x : v) {
      const Register m = both_of(x, magnitude);
      largest = _mm256_blendv_epi8(largest, m, _mm256_cmpgt_epi64(m, largest));
    }
    half.finite = _mm256_cmpgt_epi64(all64(0x7FF0000000000000), largest);
    for (Register& x : v) x = both_of(x, half.finite);
    largest = both_of(largest, half.finite);
    const Register zero = _mm256_setzero_si256();
    if (_mm256_testz_si256(largest, largest) != 0) {
      for (Register& x : v) x = zero;  // negative zeros too
      half.exponent = zero;
      return;
    }
    // The stored exponent, 0 for zero blocks.
    half.exponent = _mm256_andnot_si256(_mm256_cmpeq_epi64(largest, zero),
                                        _mm256_add_epi64(_mm256_srli_epi64(largest, 52), all64(1)));
    for (Register& x : v) {  // to_fixed()
      const Register m = both_of(x, magnitude);
      const Register field = _mm256_srli_epi64(m, 52);
      const Register subnormal = _mm256_cmpeq_epi64(field, zero);  // or zero
      const Register significand = any_of(both_of(m, all64((1ull << 52) - 1)),
                                          _mm256_andnot_si256(subnormal, all64(1ull << 52)));
      const Register shift = _mm256_add_epi64(_mm256_sub_epi64(half.exponent, field), subnormal);
      const Register fixed = _mm256_srlv_epi64(_mm256_slli_epi64(significand, 10), shift);
      const Register negative = _mm256_cmpgt_epi64(zero, x);
      x = _mm256_sub_epi64(_mm256_xor_si256(fixed, negative), negative);
    }
    to_negabinary<double>(v);
    const Register kept = coded_planes(half.exponent);
    for (Register& x : v) x = both_of(x, kept);
  }

  /// lowest_plane() as a mask.
  static Register coded_planes(Register exponent) {
    return _mm256_sllv_epi64(all64(~0ull), _mm256_subs_epu16(all64(9), exponent));
  }

  static unsigned load_part(const unsigned char* in, Part& part) {
    Half a, b;
    load_half(in, a);
    load_half(in + 128, b);
    part.exponent = low_halves(Pair{a.exponent, b.exponent});
    part.coded = _mm256_cmpgt_epi32(part.exponent, _mm256_setzero_si256());
    // The transform takes a block's largest magnitude, which fills the fixed point, nowhere near
    // the lower 32 bits: all of a block's leading zeros are in the upper ones. Only subnormal
    // blocks need not fill it.
    Pair any{};
    for (int i = 0; i < 4; ++i) any = {any_of(any.low, a.v[i]), any_of(any.high, b.v[i])};
    const Register high = high_halves(any);
    part.lead = leading_zeros(high);
    const Register tiny = both_of(_mm256_cmpeq_epi32(high, _mm256_setzero_si256()), part.coded);
    if (_mm256_testz_si256(tiny, tiny) == 0) {
      const Register beyond = _mm256_add_epi32(set(32), leading_zeros(low_halves(any)));
      part.lead = _mm256_blendv_epi8(part.lead, beyond, tiny);
    }
    const Pair lead = widen(part.lead);
    for (int i = 0; i < 4; ++i) {
      part.coefficient[i] = high_halves(
          Pair{_mm256_sllv_epi64(a.v[i], lead.low), _mm256_sllv_epi64(b.v[i], lead.high)});
    }
    const Register finite = low_halves(Pair{a.finite, b.finite});
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(finite))) ^ 0xFF;
  }

  /// The nearest double of a signed 64-bit integer: the upper and the lower half each become an
  /// exact double by way of its bits, and their sum rounds once.
  static __m256d to_double(Register v) {
    const Register low = _mm256_blend_epi32(v, all64(0x4330000000000000), 0xAA);  // 2^52 + low
    const Register high = _mm256_xor_si256(_mm256_srli_epi64(v, 32),
                                           all64(0x4530000080000000));  // 2^84 + 2^63 + 2^32 high
    const __m256d offset = _mm256_castsi256_pd(all64(0x4530000080100000));  // 2^84 + 2^63 + 2^52
    return _mm256_add_pd(_mm256_sub_pd(_mm256_castsi256_pd(high), offset),
                         _mm256_castsi256_pd(low));
  }

  static __m256d power_of_two(Register k) {
    return _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_add_epi64(k, all64(1023)), 52));
  }

  static void store_half(Register (&v)[4], Register exponent, Register lead, Register coded,
                         unsigned char* out) {
    const Register kept = coded_planes(exponent);
    for (Register& x : v) x = both_of(_mm256_srlv_epi64(x, lead), kept);
    from_negabinary<double>(v);
    // 2^k in two steps, k = exponent - 1085; the half rounds down as 1086 is even.
    const Register half =
        _mm256_sub_epi64(_mm256_srli_epi64(_mm256_add_epi64(exponent, all64(1)), 1), all64(543));
    const Register k = _mm256_sub_epi64(exponent, all64(1085));
    const __m256d first = power_of_two(half);
    const __m256d second = power_of_two(_mm256_sub_epi64(k, half));
    for (Register& x : v) {
      const __m256d scaled = _mm256_mul_pd(_mm256_mul_pd(to_double(x), first), second);
      x = both_of(_mm256_castpd_si256(scaled), coded);
    }
    transpose(v);
    for (int i = 0; i < 4; ++i) store(out + 32 * i, v[i]);
  }

  static void store_part(Part& part, unsigned char* out) {
    const Pair exponent = widen(part.exponent);
    const Pair lead = widen(part.lead);
    const Pair coded = widen(part.coded, part.coded);
    Register a[4], b[4];
    for (int i = 0; i < 4; ++i) {
      const Pair c = widen(_mm256_setzero_si256(), part.coefficient[i]);
      a[i] = c.low, b[i] = c.high;
    }
    store_half(a, exponent.low, lead.low, coded.low, out);
    store_half(b, exponent.high, lead.high, coded.high, out + 128);
  }
};

}  // namespace
}  // namespace mpress::codec::zfp::MPRESS_ISA
