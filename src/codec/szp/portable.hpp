// Bit planes without vector instructions: bit p of residual i is bit i of word p.
#pragma once

#include "codec/szp/format.hpp"

namespace mpress::codec::szp::MPRESS_ISA {
namespace {

/// Transposes an 8 x 8 bit matrix, a row a byte (Warren, Hacker's Delight, section 7-3).
std::uint64_t transpose_bits(std::uint64_t x) {
  std::uint64_t t = (x ^ (x >> 7)) & 0x00AA00AA00AA00AA;
  x ^= t ^ (t << 7);
  t = (x ^ (x >> 14)) & 0x0000CCCC0000CCCC;
  x ^= t ^ (t << 14);
  t = (x ^ (x >> 28)) & 0x00000000F0F0F0F0;
  return x ^ t ^ (t << 28);
}

template <class I>
void pack_planes(const I* residuals, std::uint32_t width, unsigned char* out) {
  for (std::uint32_t low = 0; low < width; low += 8) {
    const std::uint32_t n = width - low < 8 ? width - low : 8;
    for (std::uint32_t group = 0; group < 4; ++group) {
      std::uint64_t rows = 0;
      for (std::uint32_t i = 0; i < 8; ++i) {
        const auto byte = static_cast<std::uint64_t>(residuals[8 * group + i]) >> low & 255;
        rows |= byte << (8 * i);
      }
      rows = transpose_bits(rows);
      for (std::uint32_t p = 0; p < n; ++p) {
        out[4 * (low + p) + group] = static_cast<unsigned char>(rows >> (8 * p));
      }
    }
  }
}

template <class U>
void unpack_planes(const unsigned char* in, std::uint32_t width, U* residuals) {
  for (std::uint32_t i = 0; i < block_elements; ++i) residuals[i] = 0;
  for (std::uint32_t low = 0; low < width; low += 8) {
    const std::uint32_t n = width - low < 8 ? width - low : 8;
    for (std::uint32_t group = 0; group < 4; ++group) {
      std::uint64_t rows = 0;
      for (std::uint32_t p = 0; p < n; ++p) {
        rows |= std::uint64_t{in[4 * (low + p) + group]} << (8 * p);
      }
      rows = transpose_bits(rows);
      for (std::uint32_t i = 0; i < 8; ++i) {
        residuals[8 * group + i] |= static_cast<U>(rows >> (8 * i) & 255) << low;
      }
    }
  }
}

/// Running sums of residuals less `shift`, on top of `last`; `last` becomes the final one.
template <class U>
void integrate(U* values, U shift, U& last) {
  U sum = last;
  for (std::uint32_t i = 0; i < block_elements; ++i) values[i] = sum += values[i] - shift;
  last = sum;
}

}  // namespace
}  // namespace mpress::codec::szp::MPRESS_ISA
