// All-to-alls of a neighbourhood: the exchanges by which each block gets from its origin to its
// target. They are the same relative to each rank, so a rank knows from its own coordinates alone
// which blocks pass it, and nothing is sent to say so.
//
// Blocks are numbered origin * count + neighbour. s neighbours of d dimensions, C_j distinct values
// other than 0 of coordinate j, k ports: exchanges that a rank does at once.
//
// clang-format off: a table
// | routes    | rounds                                   | blocks that a rank sends on a torus      |
// |-----------|------------------------------------------|------------------------------------------|
// | direct    | ceil(s / k), equal offsets counted once  | s                                        |
// | combining | sum of ceil(C_j / k)                     | sum over neighbours of coordinates != 0  |
// | digits    | in base 2, by one port, sum of           | digits != 0                              |
// |           | bits(max c_j) + bits(max -c_j)           |                                          |
// | lines     | the same of multiples in each direction  | digits != 0                              |
// clang-format on
//
// Beyond borders nothing is sent; a grid is a box, so each rank that a block passes exists where
// its origin and its target do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "schedule/neighbourhoods/neighbourhood.hpp"
#include "schedule/schedule.hpp"

namespace mpress::schedule {

/// The number of a block of a neighbourhood's all-to-all.
inline Block neighbour_block(const Neighbourhood& neighbourhood, int origin, int neighbour) {
  return static_cast<Block>(origin) * static_cast<Block>(neighbourhood.count()) +
         static_cast<Block>(neighbour);
}

class Routes {
 public:
  /// The neighbourhood outlives the routes. All throw std::invalid_argument where `ports` is below
  /// 1, or `base` below 2.

  /// From the origin to the target, in the order of the list, `ports` offsets a round.
  static Routes direct(const Neighbourhood& neighbourhood, int ports);

  /// Along one dimension after another, by message combining: all blocks whose
  /// coordinate j is c go to the rank at distance c in dimension j with one message.
  static Routes combining(const Neighbourhood& neighbourhood, int ports);

  /// The same where coordinates are cut into digits: a block goes a distance of digit * base^b for
  /// each digit other than 0. Bruck et al., IEEE TPDS 8(11), 1997, dimension by dimension; base
  /// k + 1 suits k ports.
  static Routes digits(const Neighbourhood& neighbourhood, int ports, int base);

  /// Bruck's algorithm along directions: offsets that are positive multiples of one vector are a
  /// line, and all lines proceed at once. Of 1, ..., s times a vector, in base 2, it takes bits(s)
  /// rounds, the fewest there are.
  static Routes lines(const Neighbourhood& neighbourhood, int ports, int base);

  int rounds() const { return rounds_; }
  /// Messages that a rank sends on a torus.
  std::size_t messages() const { return exchanges_.size(); }
  /// Blocks in these.
  std::size_t blocks() const { return passages_.size(); }
  /// In how many of these the block for each neighbour is.
  std::vector<std::size_t> passes() const;

  /// What one rank of the grid does. Blocks of a transfer are in the order of the list. What a rank
  /// has for itself does not travel.
  Schedule schedule(int rank) const;

 private:
  class Collector;

  /// All ranks send to the same offset, and receive from its negative.
  struct Exchange {
    std::uint32_t first;  ///< of its passages
    std::uint32_t count;
    int round;
  };

  explicit Routes(const Neighbourhood& neighbourhood) : neighbourhood_(&neighbourhood) {}

  std::size_t width() const { return static_cast<std::size_t>(neighbourhood_->dimensions()); }
  std::span<const int> hop(std::size_t exchange) const {
    return std::span(hops_).subspan(exchange * width(), width());
  }
  std::span<const int> moved(std::size_t passage) const {
    return std::span(moved_).subspan(passage * width(), width());
  }

  const Neighbourhood* neighbourhood_;
  std::vector<Exchange> exchanges_;  ///< by their rounds
  std::vector<int> hops_;            ///< of each exchange
  std::vector<int> passages_;        ///< the neighbours whose blocks pass, exchange by exchange
  std::vector<int> moved_;           ///< of each passage: how far the block has come before
  int rounds_ = 0;
};

}  // namespace mpress::schedule
