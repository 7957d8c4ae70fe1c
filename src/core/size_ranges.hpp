// Runs of sizes about which one decision holds, for tables that users read.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace mpress::engine {

template <typename Decision>
struct TableRange {
  std::size_t first;  ///< bytes
  Decision decision;  ///< of that size
};

/// The ranges of the sizes from `least` to `most`, both of them `step` times a power of two, in
/// steps of `step`. `decide(bytes)` returns a decision, whose is_like(other) compares two. Within a
/// factor of two, a decision that holds at both ends is taken to hold between.
template <typename Decide>
auto size_ranges(std::size_t least, std::size_t most, std::size_t step, const Decide& decide) {
  using Decision = decltype(decide(least));
  std::vector<TableRange<Decision>> found{{least, decide(least)}};
  const auto find_changes = [&](auto& self, std::size_t low, const Decision& at_low,
                                std::size_t high, const Decision& at_high) -> void {
    if (at_low.is_like(at_high)) return;
    if (high - low <= step) {
      found.push_back({high, at_high});
      return;
    }
    const std::size_t middle = (low + high) / (2 * step) * step;
    const Decision at_middle = decide(middle);
    self(self, low, at_low, middle, at_middle);
    self(self, middle, at_middle, high, at_high);
  };
  Decision at_low = found.front().decision;
  for (std::size_t low = least; low < most; low *= 2) {
    Decision at_high = decide(2 * low);
    find_changes(find_changes, low, at_low, 2 * low, at_high);
    at_low = std::move(at_high);
  }
  return found;
}

}  // namespace mpress::engine
