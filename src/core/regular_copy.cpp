#include "core/regular_copy.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace mpress::engine {
namespace {

/// Regular runs, one after the other.
class Walk {
 public:
  explicit Walk(const ItemSpan& items) : at_(static_cast<std::byte*>(items.data)) {
    if (!items.layout || items.layout->contiguous || items.count <= 0) {
      left_ = (items.layout ? items.layout->size : 1) * static_cast<std::size_t>(items.count);
      return;
    }
    const auto runs = items.layout->regular_runs_of(items.count);
    is_known_ = runs != nullptr;
    if (!is_known_) return;
    runs_ = runs->regular();
    row_ = at_ = at_ + runs_.first;
    left_ = runs_.bytes;
  }

  bool is_known() const { return is_known_; }
  std::byte* at() const { return at_; }
  std::size_t left() const { return left_; }

  void advance(std::size_t bytes) {
    left_ -= bytes;
    at_ += bytes;
    if (left_ > 0 || ++number_ >= runs_.count) return;
    if (number_ % runs_.inner == 0) {
      row_ += runs_.outer;
      run_ = 0;
    } else {
      ++run_;
    }
    at_ = row_ + run_ * runs_.stride;
    left_ = runs_.bytes;
  }

 private:
  bool is_known_ = true;
  gpu::RegularRuns runs_;
  std::byte* at_;
  std::byte* row_ = nullptr;
  std::int64_t run_ = 0;      ///< of its row
  std::uint32_t number_ = 0;  ///< of all
  std::size_t left_ = 0;      ///< of the run
};

}  // namespace

bool copy_regular(const ItemSpan& from, const ItemSpan& to) {
  Walk source(from), target(to);
  if (!source.is_known() || !target.is_known()) return false;
  for (std::size_t bytes = std::min(source.left(), target.left()); bytes > 0;
       bytes = std::min(source.left(), target.left())) {
    // Of the lengths that edges of arrays have, the compiler makes no calls.
    switch (bytes) {
      case 4: std::memcpy(target.at(), source.at(), 4); break;
      case 8: std::memcpy(target.at(), source.at(), 8); break;
      case 16: std::memcpy(target.at(), source.at(), 16); break;
      case 32: std::memcpy(target.at(), source.at(), 32); break;
      default: std::memcpy(target.at(), source.at(), bytes);
    }
    source.advance(bytes);
    target.advance(bytes);
  }
  return true;
}

}  // namespace mpress::engine
