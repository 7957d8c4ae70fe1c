// Sums of szp that begin before anybody knows the range of their elements, to find which takes a
// sixth of their time: within an absolute bound by a grid that serves most ranges, within a
// relative one by that of the last sum of as many elements. Where it turns out not to serve, the
// sum is made again.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

#include "codec/element.hpp"
#include "codec/szp/format.hpp"

namespace mpress::engine {

/// Of a context, whose members make the same calls, and learn the same of each.
class BlindSums {
 public:
  /// Once for each call that might.
  bool may_begin() {
    if (left_ == 0) return true;
    --left_;
    return false;
  }

  /// Did its result stand? After those that did not, ever more calls look first.
  void ended(bool stood) {
    constexpr unsigned most = 64;
    pause_ = stood ? 0 : std::min(2 * pause_ + 1, most);
    left_ = pause_;
  }

  /// What the grid of the last sum of `count` elements followed from, within a relative bound; none
  /// where that is long ago.
  std::optional<codec::szp::Grounds> expected(ElementType type, std::size_t count) const {
    for (const Ended& one : ended_) {
      if (one.type == type && one.count == count) return one.grounds;
    }
    return std::nullopt;
  }
  void learn(ElementType type, std::size_t count, const codec::szp::Grounds& grounds) {
    for (Ended& one : ended_) {
      if (one.type == type && one.count == count) {
        one.grounds = grounds;
        return;
      }
    }
    ended_[next_] = {type, count, grounds};
    next_ = (next_ + 1) % ended_.size();
  }

 private:
  struct Ended {
    ElementType type = ElementType::f32;
    std::size_t count = 0;  ///< none
    codec::szp::Grounds grounds;
  };

  unsigned pause_ = 0, left_ = 0;  ///< calls
  std::array<Ended, 8> ended_;     ///< of different sizes
  std::size_t next_ = 0;           ///< to be replaced
};

}  // namespace mpress::engine
