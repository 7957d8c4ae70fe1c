#include "memory/ranges.hpp"

#include <algorithm>
#include <iterator>

namespace mpress::memory {

std::optional<std::uint64_t> Ranges::take(std::uint64_t size) {
  const auto found = std::find_if(free_.begin(), free_.end(),
                                  [&](const auto& range) { return range.second >= size; });
  if (found == free_.end()) return std::nullopt;
  const auto [begin, room] = *found;
  free_.erase(found);
  if (room > size) free_[begin + size] = room - size;
  return begin;
}

void Ranges::give(std::uint64_t begin, std::uint64_t size) {
  auto range = free_.emplace(begin, size).first;
  const auto next = std::next(range);
  if (next != free_.end() && begin + size == next->first) {
    range->second += next->second;
    free_.erase(next);
  }
  if (range == free_.begin()) return;
  const auto before = std::prev(range);
  if (before->first + before->second != begin) return;
  before->second += range->second;
  free_.erase(range);
}

bool Ranges::fits(std::uint64_t size) const {
  return std::any_of(free_.begin(), free_.end(),
                     [&](const auto& range) { return range.second >= size; });
}

}  // namespace mpress::memory
