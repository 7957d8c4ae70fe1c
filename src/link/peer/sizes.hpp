// Sizes of what the peer link shares.
#pragma once

#include <cstdint>

namespace mpress::link {

inline constexpr std::uint64_t slot_alignment = 256;

/// What CUDA gives and maps at least.
inline constexpr std::uint64_t staging_grain = 2u << 20;

constexpr std::uint64_t rounded(std::uint64_t bytes, std::uint64_t grain) {
  return (bytes + grain - 1) / grain * grain;
}

}  // namespace mpress::link
