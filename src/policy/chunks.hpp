// How large the chunks of a message between linked devices are.
#pragma once

#include <cstddef>

namespace mpress::policy {

/// Bytes of elements in a chunk of a message that is cut, where those by way of the host have
/// `base`. Larger ones: a short chunk does not fill a device, and no copy by the host's memory
/// waits for it; but messages that are not long have some too, so that what they go through
/// overlaps.
constexpr std::size_t linked_chunk(std::size_t bytes, std::size_t base) {
  if (bytes >= 64 * base) return 8 * base;
  return bytes >= 16 * base ? 4 * base : 2 * base;
}

}  // namespace mpress::policy
