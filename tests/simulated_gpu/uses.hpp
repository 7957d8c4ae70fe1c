// What work under way does with memory, queue by queue.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "gpu/gpu.hpp"

namespace mpress::simulated {

/// What a piece of work does with memory.
struct Access {
  const std::byte* memory;
  std::size_t bytes;
  bool writes;
  bool sparse = false;  ///< not all of it, so that others may work between its pieces
};

inline bool overlap(const Access& access, const void* memory, std::size_t bytes) {
  const auto* const begin = static_cast<const std::byte*>(memory);
  return access.bytes > 0 && bytes > 0 && access.memory < begin + bytes &&
         begin < access.memory + access.bytes;
}

/// Work of one queue begins and ends in order. A queue may have a quarter of a million copies under
/// way, so each look compares with the bounds of all of them first.
class Uses {
 public:
  /// `place`: that the memory is of; bounds span one alone.
  void add(const void* queue, int place, std::uint64_t event, const Access& access) {
    Group& group = groups_[{queue, place}];
    if (group.uses.empty()) group = {{}, access.memory, access.memory};
    group.begin = std::min(group.begin, access.memory);
    group.end = std::max(group.end, access.memory + access.bytes);
    group.uses.emplace_back(event, access);
    ++count_;
  }

  /// Takes out those of a queue's work up to `event`.
  std::vector<Access> end(const void* queue, std::uint64_t event) {
    std::vector<Access> ended;
    auto group = groups_.lower_bound({queue, lowest_place});
    while (group != groups_.end() && group->first.first == queue) {
      auto& uses = group->second.uses;
      for (; !uses.empty() && uses.front().first <= event; uses.pop_front()) {
        ended.push_back(uses.front().second);
      }
      group = uses.empty() ? groups_.erase(group) : std::next(group);
    }
    count_ -= ended.size();
    return ended;
  }

  /// Calls visit(access) for each that overlaps these bytes, but for those of a queue's own.
  template <typename Visit>
  void overlapping(const std::byte* memory, std::size_t bytes, const Visit& visit,
                   const void* own = nullptr) const {
    for (const auto& [key, group] : groups_) {
      if (key.first == own || memory >= group.end || group.begin >= memory + bytes) continue;
      for (const auto& [event, access] : group.uses) {
        if (overlap(access, memory, bytes)) visit(access);
      }
    }
  }

  std::size_t count() const { return count_; }

 private:
  static constexpr int lowest_place = gpu::host;
  struct Group {
    std::deque<std::pair<std::uint64_t, Access>> uses;
    const std::byte* begin;
    const std::byte* end;
  };
  std::map<std::pair<const void*, int>, Group> groups_;
  std::size_t count_ = 0;
};

}  // namespace mpress::simulated
