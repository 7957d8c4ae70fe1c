// szp with AVX-512: a plane of 32 residuals is one mask register.
#include <immintrin.h>

#include "codec/szp/format.hpp"

namespace mpress::codec::szp::MPRESS_ISA {
namespace {

__m512i load512(const void* p) { return _mm512_load_si512(p); }
void store512(void* p, __m512i x) { _mm512_store_si512(p, x); }

void put_plane(unsigned char* out, __mmask32 plane) {
  const std::uint32_t word = _cvtmask32_u32(plane);
  __builtin_memcpy(out, &word, 4);
}

__mmask32 get_plane(const unsigned char* in) {
  std::uint32_t word;
  __builtin_memcpy(&word, in, 4);
  return _cvtu32_mask32(word);
}

/// Planes of 32 residuals of 16 bits.
void pack_planes16(__m512i x, std::uint32_t width, unsigned char* out) {
  __m512i bit = _mm512_set1_epi16(1);
  for (std::uint32_t p = 0; p < width; ++p) {
    put_plane(out + 4 * p, _mm512_test_epi16_mask(x, bit));
    bit = _mm512_add_epi16(bit, bit);
  }
}

__m512i unpack_planes16(const unsigned char* in, std::uint32_t width) {
  __m512i x = _mm512_setzero_si512();
  __m512i bit = _mm512_set1_epi16(1);
  for (std::uint32_t p = 0; p < width; ++p) {
    x = _mm512_mask_add_epi16(x, get_plane(in + 4 * p), x, bit);
    bit = _mm512_add_epi16(bit, bit);
  }
  return x;
}

__m512i low16(__m512i a, __m512i b) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi32_epi16(a)),
                            _mm512_cvtepi32_epi16(b), 1);
}

__m512i widen_low(__m512i x) { return _mm512_cvtepu16_epi32(_mm512_castsi512_si256(x)); }
__m512i widen_high(__m512i x) { return _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(x, 1)); }

void pack_planes(const std::int32_t* residuals, std::uint32_t width, unsigned char* out) {
  __m512i a = load512(residuals);
  __m512i b = load512(residuals + 16);
  const std::uint32_t low = width < 16 ? width : 16;
  pack_planes16(low16(a, b), low, out);
  if (width == low) return;
  a = _mm512_srli_epi32(a, 16);
  b = _mm512_srli_epi32(b, 16);
  pack_planes16(low16(a, b), width - 16, out + 64);
}

void unpack_planes(const unsigned char* in, std::uint32_t width, std::uint32_t* residuals) {
  const std::uint32_t low = width < 16 ? width : 16;
  const __m512i x = unpack_planes16(in, low);
  __m512i a = widen_low(x);
  __m512i b = widen_high(x);
  if (width > low) {
    const __m512i y = unpack_planes16(in + 64, width - 16);
    a = _mm512_or_si512(a, _mm512_slli_epi32(widen_low(y), 16));
    b = _mm512_or_si512(b, _mm512_slli_epi32(widen_high(y), 16));
  }
  store512(residuals, a);
  store512(residuals + 16, b);
}

/// Splits 64-bit residuals into halves, which are packed one after the other.
void pack_planes(const std::int64_t* residuals, std::uint32_t width, unsigned char* out) {
  alignas(64) std::int32_t half[block_elements];
  for (std::uint32_t low = 0; low < width; low += 32) {
    const std::uint32_t n = width - low < 32 ? width - low : 32;
    for (std::uint32_t i = 0; i < block_elements; ++i) {
      half[i] = static_cast<std::int32_t>(residuals[i] >> low);
    }
    pack_planes(half, n, out + 4 * low);
  }
}

void unpack_planes(const unsigned char* in, std::uint32_t width, std::uint64_t* residuals) {
  alignas(64) std::uint32_t half[2][block_elements] = {};
  for (std::uint32_t low = 0; low < width; low += 32) {
    const std::uint32_t n = width - low < 32 ? width - low : 32;
    unpack_planes(in + 4 * low, n, half[low / 32]);
  }
  for (std::uint32_t i = 0; i < block_elements; ++i) {
    residuals[i] = half[0][i] | std::uint64_t{half[1][i]} << 32;
  }
}

__m512i running_sums(__m512i x) {
  const __m512i zero = _mm512_setzero_si512();
  x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 15));
  x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 14));
  x = _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 12));
  return _mm512_add_epi32(x, _mm512_alignr_epi32(x, zero, 8));
}

/// Running sums of residuals less `shift`, on top of `last`; `last` becomes the final one.
void integrate(std::uint32_t* values, std::uint32_t shift, std::uint32_t& last) {
  const __m512i less = _mm512_set1_epi32(static_cast<int>(shift));
  const __m512i top = _mm512_set1_epi32(15);
  const __m512i a = running_sums(_mm512_sub_epi32(load512(values), less));
  const __m512i b = running_sums(_mm512_sub_epi32(load512(values + 16), less));
  const __m512i before = _mm512_set1_epi32(static_cast<int>(last));
  const __m512i middle = _mm512_add_epi32(before, _mm512_permutexvar_epi32(top, a));
  store512(values, _mm512_add_epi32(a, before));
  const __m512i end = _mm512_add_epi32(b, middle);
  store512(values + 16, end);
  last = static_cast<std::uint32_t>(
      _mm_cvtsi128_si32(_mm512_castsi512_si128(_mm512_permutexvar_epi32(top, end))));
}

void integrate(std::uint64_t* values, std::uint64_t shift, std::uint64_t& last) {
  std::uint64_t sum = last;
  for (std::uint32_t i = 0; i < block_elements; ++i) values[i] = sum += values[i] - shift;
  last = sum;
}

}  // namespace
}  // namespace mpress::codec::szp::MPRESS_ISA

// The unit codec calls the primitives above.
#include "codec/szp/decode.hpp"
#include "codec/szp/encode.hpp"
// The sum of two units calls both.
#include "codec/szp/add.hpp"
