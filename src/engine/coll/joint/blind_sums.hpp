// Sums of szp within an absolute bound that begin before anybody has looked for their greatest
// element, which takes a sixth of their time. Where one turns out to be too large, or has no
// quantum for another reason, members look after all, and the sum may have to be made again.
#pragma once

#include <algorithm>

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

  /// Had all elements quanta? After those that had not, ever more calls look first.
  void ended(bool were_quanta) {
    constexpr unsigned most = 64;
    pause_ = were_quanta ? 0 : std::min(2 * pause_ + 1, most);
    left_ = pause_;
  }

 private:
  unsigned pause_ = 0, left_ = 0;  ///< calls
};

}  // namespace mpress::engine
