// An isomorphic neighbourhood: each rank of a grid sends to the ranks at the same list of offsets,
// and receives from those at the negated ones. Neighbour i of rank X: target X + C_i, source X -
// C_i. Träff, Lübbe, Rougier, Hunold: Isomorphic, Sparse MPI-like Collective Communication
// Operations for Parallel Stencil Computations, EuroMPI 2015.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "schedule/neighbourhoods/grid.hpp"

namespace mpress::schedule {

/// Offsets in the order of the program's list, which may name one more than once, the rank itself,
/// and what lies beyond a border from everywhere.
class Neighbourhood {
 public:
  Neighbourhood() = default;

  /// `offsets`: one behind the other, each with an element for each dimension; `count` of them.
  /// Throws std::invalid_argument where the length is another.
  Neighbourhood(Grid grid, int count, std::span<const int> offsets);

  const Grid& grid() const { return grid_; }
  int dimensions() const { return grid_.dimensions(); }
  int count() const { return count_; }

  /// As the program gave it.
  std::span<const int> offset(int neighbour) const { return part(given_, neighbour); }
  /// Grid::canonical(); that of the program where no rank has such a neighbour.
  std::span<const int> canonical(int neighbour) const { return part(canonical_, neighbour); }

  /// Has any rank such a neighbour?
  bool is_possible(int neighbour) const { return possible_[at(neighbour)] != 0; }
  /// Is it each rank itself?
  bool is_self(int neighbour) const;

  /// Of the rank at `coordinates`; Grid::none where there is none.
  int target(std::span<const int> coordinates, int neighbour) const {
    return grid_.neighbour(coordinates, offset(neighbour));
  }
  int source(std::span<const int> coordinates, int neighbour) const {
    return grid_.neighbour(coordinates, offset(neighbour), -1);
  }

  /// The same for equal grids and lists of offsets; for others almost always another.
  std::uint64_t hash() const;

 private:
  static std::size_t at(int value) { return static_cast<std::size_t>(value); }
  std::span<const int> part(const std::vector<int>& all, int neighbour) const {
    return std::span(all).subspan(at(neighbour) * at(dimensions()), at(dimensions()));
  }

  Grid grid_;
  int count_ = 0;
  std::vector<int> given_;
  std::vector<int> canonical_;
  std::vector<char> possible_;
};

/// How many offsets of `dimensions` elements have a greatest absolute value above `inner` and at
/// most `radius`. `inner` 0: all but the rank itself; -1: it, too. Throws std::invalid_argument
/// unless -1 <= inner <= radius, and where an int cannot count all of their elements.
int moore_count(int dimensions, int radius, int inner = 0);

/// How many have a sum of absolute values within these bounds.
int von_neumann_count(int dimensions, int radius, int inner = 0);

/// The first `most` of these offsets in lexicographic order, one behind the other.
std::vector<int> moore(int dimensions, int radius, int inner = 0,
                       int most = std::numeric_limits<int>::max());
std::vector<int> von_neumann(int dimensions, int radius, int inner = 0,
                             int most = std::numeric_limits<int>::max());

}  // namespace mpress::schedule
