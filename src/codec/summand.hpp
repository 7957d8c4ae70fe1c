// Summands of codecs that add payloads.
#pragma once

#include <cstddef>

namespace mpress::codec {

/// A payload, or elements, untrusted.
struct Summand {
  const void* payload;  ///< of any alignment; more than one summand may be the same
  std::size_t bytes;
  bool is_elements = false;  ///< those lie there, of any alignment, and `bytes` does not count
};

/// Summands of one addition, at most. 32 bits hold szp's sums of so many before anything is known
/// of them.
inline constexpr std::size_t most_summands = 8;

}  // namespace mpress::codec
