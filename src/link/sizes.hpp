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

/// Whether to look at all that is on its way once more, before something is refused: seldom, where
/// much is and that did not help, so that a refusal costs little however much is on its way.
class FullLooks {
 public:
  /// `left`: are on their way now.
  bool is_due(std::size_t left) {
    to_skip_ = std::min(to_skip_, left / looks_a_skip);
    if (to_skip_ == 0) return true;
    --to_skip_;
    return false;
  }
  /// All of them have been looked at.
  void note(bool has_helped, std::size_t left) { to_skip_ = has_helped ? 0 : left / looks_a_skip; }

 private:
  static constexpr std::size_t looks_a_skip = 16;
  std::size_t to_skip_ = 0;
};

/// attempt() after a few, and if that fails once more after all, of `sent` have been looked at by
/// reclaim(count).
template <typename Queue, typename Reclaim, typename Attempt>
bool attempt_reserving(FullLooks& looks, const Queue& sent, const Reclaim& reclaim,
                       const Attempt& attempt) {
  reclaim(reclaimed_first);
  if (attempt()) return true;
  if (sent.empty() || !looks.is_due(sent.size())) return false;
  reclaim(sent.size());
  const bool has_helped = attempt();
  looks.note(has_helped, sent.size());
  return has_helped;
}

}  // namespace mpress::link
