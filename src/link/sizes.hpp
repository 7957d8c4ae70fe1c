// Sizes of what links share, and how they free it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace mpress::link {

inline constexpr std::uint64_t slot_alignment = 256;

/// What CUDA gives and maps at least, and a large page.
inline constexpr std::uint64_t staging_grain = 2u << 20;

constexpr std::uint64_t rounded(std::uint64_t bytes, std::uint64_t grain) {
  return (bytes + grain - 1) / grain * grain;
}

/// Of the first piece of send staging.
inline constexpr std::uint64_t least_staging = 32u << 20;

/// Where memory ran out, this many messages go by before it is asked for again.
inline constexpr std::uint64_t reservations_between_asking = 64;

/// What was sent the longest ago is looked at first, and so many of that before any message.
inline constexpr std::size_t reclaimed_first = 8;

/// Frees what is over, of the `count` that were looked at the longest ago, and keeps the rest for
/// later: a reader who is late costs a send no more, and holds up nobody else's memory.
template <typename Queue, typename IsOver, typename Free>
void reclaim_oldest(Queue& sent, std::size_t count, const IsOver& is_over, const Free& free) {
  for (count = std::min(count, sent.size()); count > 0; --count) {
    const auto oldest = sent.front();
    sent.pop_front();
    if (is_over(oldest)) {
      free(oldest);
    } else {
      sent.push_back(oldest);
    }
  }
}

}  // namespace mpress::link
