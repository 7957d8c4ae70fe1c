#include "message/in_place.hpp"

#include <algorithm>
#include <utility>

#include "core/spin_lock.hpp"

namespace mpress::engine {

/// The first interval that ends behind `begin`.
std::vector<InPlaceReceives::Interval>::iterator InPlaceReceives::first_behind(
    std::uintptr_t begin) {
  return std::upper_bound(intervals_.begin(), intervals_.end(), begin,
                          [](std::uintptr_t at, const Interval& one) { return at < one.end; });
}

bool InPlaceReceives::add(std::uintptr_t begin, std::size_t bytes,
                          std::weak_ptr<InPlaceReceive> receive) {
  const SpinLock lock(locked_);
  const auto next = first_behind(begin);
  if (next != intervals_.end() && next->begin < begin + bytes) return false;
  intervals_.insert(next, {begin, begin + bytes, std::move(receive)});
  size_.store(intervals_.size(), std::memory_order_release);
  return true;
}

void InPlaceReceives::remove(std::uintptr_t begin) {
  const SpinLock lock(locked_);
  intervals_.erase(first_behind(begin));
  size_.store(intervals_.size(), std::memory_order_release);
}

std::vector<std::shared_ptr<InPlaceReceive>> InPlaceReceives::overlapping(std::uintptr_t begin,
                                                                          std::size_t bytes) {
  std::vector<std::shared_ptr<InPlaceReceive>> found;
  if (empty()) return found;
  const SpinLock lock(locked_);
  for (auto one = first_behind(begin); one != intervals_.end() && one->begin < begin + bytes;
       ++one) {
    if (auto receive = one->receive.lock()) found.push_back(std::move(receive));
  }
  return found;
}

}  // namespace mpress::engine
