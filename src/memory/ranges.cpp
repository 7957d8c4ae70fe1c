#include "memory/ranges.hpp"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

namespace mpress::memory {

std::optional<std::uint64_t> Ranges::take(std::uint64_t size) {
  const auto found = std::find_if(free_.begin(), free_.end(),
                                  [&](const auto& range) { return range.second >= size; });
  if (found == free_.end()) return std::nullopt;
  auto rest = free_.extract(found);  // nothing is allocated
  const std::uint64_t begin = rest.key();
  if (rest.mapped() > size) {
    rest.key() += size;
    rest.mapped() -= size;
    free_.insert(std::move(rest));
  }
  return begin;
}

void Ranges::give(std::uint64_t begin, std::uint64_t size) {
  std::map<std::uint64_t, std::uint64_t>::iterator range;
  try {
    range = free_.emplace(begin, size).first;
  } catch (const std::bad_alloc&) {
    return;  // nobody gets it any more
  }
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
