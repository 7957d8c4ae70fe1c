// What devices tell of their work, in memory that hosts and other devices read.
#pragma once

#include <cstdint>

#include "codec/status.hpp"

namespace mpress {

/// Of a payload that was written, or of elements that were decoded: written in one store of 16
/// bytes, which other threads, processes and devices see whole. A reader loads `sequence` with
/// acquire until it is not 0, or not what it was before. Then the rest is valid, and the payload or
/// the elements are complete for any host or device that starts to read them, wherever they lie.
struct alignas(16) Report {
  std::uint64_t bytes = 0;  ///< of the payload
  codec::Status status = codec::Status::ok;
  std::uint32_t sequence = 0;  ///< a device writes no 0; which number it writes is of no use
};
static_assert(sizeof(Report) == 16);

/// Minimum and maximum of the finite elements, and what else there is. Read as a Report is; the
/// sequence is its writer's choice.
struct alignas(32) Extent {
  static constexpr std::uint32_t finite = 1;     ///< there are finite elements
  static constexpr std::uint32_t nonfinite = 2;  ///< there are NaN or infinities

  double min = 0;  ///< both 0 where no element is finite
  double max = 0;
  std::uint32_t flags = 0;
  std::uint32_t sequence = 0;
};

}  // namespace mpress
