// szp with AVX2: a plane of 32 residuals is the sign bits of 32 bytes.
#include <immintrin.h>

#include "codec/szp/format.hpp"

namespace mpress::codec::szp::MPRESS_ISA {
namespace {

__m256i load256(const void* p) { return _mm256_load_si256(static_cast<const __m256i*>(p)); }
void store256(void* p, __m256i x) { _mm256_store_si256(static_cast<__m256i*>(p), x); }

/// The lowest bytes of 32 residuals, in order.
__m256i low_bytes(__m256i a, __m256i b, __m256i c, __m256i d) {
  const __m256i byte = _mm256_set1_epi32(255);
  const __m256i ab = _mm256_packus_epi32(_mm256_and_si256(a, byte), _mm256_and_si256(b, byte));
  const __m256i cd = _mm256_packus_epi32(_mm256_and_si256(c, byte), _mm256_and_si256(d, byte));
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  return _mm256_permutevar8x32_epi32(_mm256_packus_epi16(ab, cd), order);
}

/// `n` planes (1 to 8) of 32 bytes, from the highest down.
void pack_planes8(__m256i x, std::uint32_t n, unsigned char* out) {
  x = _mm256_sll_epi16(x, _mm_cvtsi32_si128(static_cast<int>(8 - n)));
  for (std::uint32_t p = n; p-- > 0;) {
    const int plane = _mm256_movemask_epi8(x);
    __builtin_memcpy(out + 4 * p, &plane, 4);
    x = _mm256_add_epi8(x, x);
  }
}

__m256i unpack_planes8(const unsigned char* in, std::uint32_t n) {
  const __m256i spread = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,  //
                                          2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
  const __m256i bits = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201u));
  __m256i x = _mm256_setzero_si256();
  for (std::uint32_t p = n; p-- > 0;) {
    int word;
    __builtin_memcpy(&word, in + 4 * p, 4);
    const __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(word), spread);
    const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bits), bits);
    x = _mm256_sub_epi8(_mm256_add_epi8(x, x), set);
  }
  return x;
}

void pack_planes(const std::int32_t* residuals, std::uint32_t width, unsigned char* out) {
  __m256i a = load256(residuals);
  __m256i b = load256(residuals + 8);
  __m256i c = load256(residuals + 16);
  __m256i d = load256(residuals + 24);
  for (;;) {
    pack_planes8(low_bytes(a, b, c, d), width < 8 ? width : 8, out);
    if (width <= 8) return;
    a = _mm256_srli_epi32(a, 8);
    b = _mm256_srli_epi32(b, 8);
    c = _mm256_srli_epi32(c, 8);
    d = _mm256_srli_epi32(d, 8);
    width -= 8;
    out += 32;
  }
}

void unpack_planes(const unsigned char* in, std::uint32_t width, std::uint32_t* residuals) {
  __m256i sum[4] = {};
  for (std::uint32_t low = 0; low < width; low += 8) {
    const __m256i x = unpack_planes8(in + 4 * low, width - low < 8 ? width - low : 8);
    const __m128i half[2] = {_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1)};
    const __m128i up = _mm_cvtsi32_si128(static_cast<int>(low));
    for (std::uint32_t k = 0; k < 4; ++k) {
      const __m128i eight = k % 2 == 0 ? half[k / 2] : _mm_srli_si128(half[k / 2], 8);
      sum[k] = _mm256_or_si256(sum[k], _mm256_sll_epi32(_mm256_cvtepu8_epi32(eight), up));
    }
  }
  for (std::uint32_t k = 0; k < 4; ++k) store256(residuals + 8 * k, sum[k]);
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

/// Running sums of residuals less `shift`, on top of `last`; `last` becomes the final one.
void integrate(std::uint32_t* values, std::uint32_t shift, std::uint32_t& last) {
  const __m256i less = _mm256_set1_epi32(static_cast<int>(shift));
  const __m256i top = _mm256_set1_epi32(7);
  __m256i before = _mm256_set1_epi32(static_cast<int>(last));
  for (std::uint32_t i = 0; i < block_elements; i += 8) {
    __m256i x = _mm256_sub_epi32(load256(values + i), less);
    x = _mm256_add_epi32(x, _mm256_slli_si256(x, 4));
    x = _mm256_add_epi32(x, _mm256_slli_si256(x, 8));
    const __m256i low = _mm256_permute2x128_si256(x, x, 0x08);  // its low half, above zeros
    x = _mm256_add_epi32(x, _mm256_shuffle_epi32(low, 0xFF));
    x = _mm256_add_epi32(x, before);
    store256(values + i, x);
    before = _mm256_permutevar8x32_epi32(x, top);
  }
  last = static_cast<std::uint32_t>(_mm_cvtsi128_si32(_mm256_castsi256_si128(before)));
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
