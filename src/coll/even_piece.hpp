// Cutting data of which several ranks have parts.
#pragma once

#include <cstdint>

namespace mpress::engine {

/// The length of each of `pieces` that begin at multiples of `grain` and together have `all`; the
/// last are shorter, or empty.
constexpr std::uint64_t even_piece(std::uint64_t all, std::uint64_t pieces, std::uint64_t grain) {
  const std::uint64_t even = (all + pieces - 1) / pieces;
  return (even + grain - 1) / grain * grain;
}

}  // namespace mpress::engine
