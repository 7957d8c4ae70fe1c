// Room within a block, handed out in ranges.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace mpress::memory {

/// The ranges of [0, size) that nobody has; neighbours are one. Not thread-safe.
class Ranges {
 public:
  explicit Ranges(std::uint64_t size) {
    if (size > 0) free_[0] = size;
  }

  /// Where the first `size` units in a row are free that are not taken any more then; empty where
  /// there are none.
  std::optional<std::uint64_t> take(std::uint64_t size);

  /// The opposite, for a range as it was taken.
  void give(std::uint64_t begin, std::uint64_t size);

  bool fits(std::uint64_t size) const;

 private:
  std::map<std::uint64_t, std::uint64_t> free_;  ///< sizes by where they begin
};

}  // namespace mpress::memory
