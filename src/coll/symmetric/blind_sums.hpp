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
#include "codec/sum_grid.hpp"

namespace mpress::engine {

/// Of a team, whose members make the same calls, and learn the same of each.
class BlindSums {
 public:
  /// Sums that are likely to be of the same data, a little later.
  struct Like {
    ElementType type;
    std::size_t count;  ///< of elements; not 0

    bool operator==(const Like&) const = default;
  };

  /// Once for each call that might.
  bool may_begin(const Like& like) {
    Ended& one = find(like);
    if (one.left == 0) return true;
    --one.left;
    return false;
  }

  /// Did its result stand? After those that did not, ever more calls look first.
  void ended(const Like& like, bool stood) {
    constexpr unsigned most = 64;
    Ended& one = find(like);
    one.pause = stood ? 0 : std::min(2 * one.pause + 1, most);
    one.left = one.pause;
  }

  /// What the grid of the last one followed from, within a relative bound; none where that is long
  /// ago.
  std::optional<codec::Grounds> expected(const Like& like) { return find(like).grounds; }
  void learn(const Like& like, const codec::Grounds& grounds) { find(like).grounds = grounds; }

 private:
  struct Ended {
    Like like{ElementType::f32, 0};
    std::optional<codec::Grounds> grounds = std::nullopt;
    unsigned pause = 0, left = 0;  ///< calls
  };

  /// Which takes the place of another one where there are too many.
  Ended& find(const Like& like) {
    for (Ended& one : ended_) {
      if (one.like == like) return one;
    }
    Ended& made = ended_[next_];
    next_ = (next_ + 1) % ended_.size();
    made = {like};
    return made;
  }

  std::array<Ended, 8> ended_;
  std::size_t next_ = 0;  ///< to be replaced
};

}  // namespace mpress::engine
