// The k-nomial tree over places 0 to size - 1, of which 0 is the root.
//
// Written with digits of base k, a place's parent is the place without its last digit that is not
// zero. Large subtrees are served first: the tree is as deep in rounds as the places have digits.
#pragma once

#include <cstdint>

#include "schedule/builder.hpp"

namespace mpress::schedule {

/// ceil(log_k n): how many digits of base k the numbers below n have; 0 for n = 1.
constexpr int digits(int n, int k) {
  int count = 0;
  for (std::int64_t power = 1; power < n; power *= k) ++count;
  return count;
}

class Knomial {
 public:
  /// `radix`: at least 2.
  Knomial(int size, int radix) : size_(size), radix_(radix), rounds_(digits(size, radix)) {}

  int rounds() const { return rounds_; }

  int parent(int place) const {
    const std::int64_t width = this->width(place);
    return static_cast<int>(place - place / width % radix_ * width);
  }
  /// In which it hears from its parent. `place`: not 0.
  int round(int place) const {
    int zeros = 0;
    for (std::int64_t rest = place; rest % radix_ == 0; rest /= radix_) ++zeros;
    return rounds_ - 1 - zeros;
  }
  /// One past the last place of its subtree, which begins with `place`.
  int end(int place) const {
    const std::int64_t end = place + width(place);
    return end < size_ ? static_cast<int>(end) : size_;
  }
  /// visit(child, round), in the order of rounds.
  template <class Visit>
  void for_each_child(int place, Visit visit) const {
    for (std::int64_t width = this->width(place) / radix_; width >= 1; width /= radix_)
      for (std::int64_t child = place + width; child < size_ && child < place + width * radix_;
           child += width)
        visit(static_cast<int>(child), round(static_cast<int>(child)));
  }

 private:
  /// What its last digit that is not zero counts in; the root's is that of all.
  std::int64_t width(int place) const {
    std::int64_t width = 1;
    if (place == 0)
      while (width < size_) width *= radix_;
    else
      while (place / width % radix_ == 0) width *= radix_;
    return width;
  }

  int size_;
  std::int64_t radix_;
  int rounds_;
};

/// A scatter down the tree: each place gets the blocks of its subtree, and passes on those of its
/// children's. `block_of(place)`: what a place is to get.
template <class BlockOf>
void scatter_down(Builder& builder, const Knomial& tree, const Circle& circle, int place,
                  BlockOf block_of) {
  const auto add_subtree = [&](int top) {
    for (int below = top; below < tree.end(top); ++below) builder.block(block_of(below));
  };
  if (place != 0) {
    add_subtree(place);
    builder.receive(circle.rank(tree.parent(place)), tree.round(place));
  }
  tree.for_each_child(place, [&](int child, int round) {
    add_subtree(child);
    builder.send(circle.rank(child), round);
  });
}

}  // namespace mpress::schedule
