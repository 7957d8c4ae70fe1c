// The payload checksum: a weighted sum of 32-bit little-endian words modulo 2^32.
//
// Every weight is odd, so any change confined to one word changes the sum; the sum does not
// depend on the order of evaluation, so GPU threads add their parts with one atomic each.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__CUDACC__)
#define MPRESS_HOST_DEVICE __host__ __device__
#else
#define MPRESS_HOST_DEVICE
#endif

namespace mpress {

/// Weight of the word at index `i`.
MPRESS_HOST_DEVICE constexpr std::uint32_t checksum_weight(std::uint32_t i) {
  return (i * 0x9E3779B1u) | 1u;
}

/// Sum over `bytes` bytes at `data` (any alignment), whose first word has index `first`. A
/// partial last word counts as if padded with zeros.
std::uint32_t checksum(const void* data, std::size_t bytes, std::uint32_t first = 0);

}  // namespace mpress
