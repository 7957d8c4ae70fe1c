// A Cartesian grid of ranks, as MPI numbers it: the last dimension varies fastest. In periodic
// dimensions coordinates wrap; beyond the border of the others there is no rank.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mpress::schedule {

class Grid {
 public:
  /// The rank beyond a border.
  static constexpr int none = -1;

  Grid() = default;

  /// Both spans have an element for each dimension; none is a grid of one rank. Throws
  /// std::invalid_argument where a size is below 1 or the ranks do not fit an int.
  Grid(std::span<const int> sizes, std::span<const int> periodic);

  int dimensions() const { return static_cast<int>(sizes_.size()); }
  int ranks() const { return ranks_; }
  int size(int dimension) const { return sizes_[at(dimension)]; }
  bool is_periodic(int dimension) const { return periodic_[at(dimension)] != 0; }

  /// `rank` is one of the grid's; `coordinates` has an element for each dimension.
  void coordinates(int rank, std::span<int> coordinates) const;

  /// The rank at `coordinates` + sign * `offset`, of any size; none beyond a border.
  int neighbour(std::span<const int> coordinates, std::span<const int> offset, int sign = 1) const;

  /// The offset from one rank to another: in periodic dimensions that of the least absolute value,
  /// and of two such the positive one.
  void offset(int from, int to, std::span<int> offset) const;

  /// Of offsets that lead to the same rank from everywhere the one that offset() gives. False where
  /// it leads beyond a border from everywhere: it then stays as it was.
  bool canonical(std::span<int> offset) const;

  /// A coordinate displaced within its dimension; none beyond a border.
  int moved(int dimension, int coordinate, std::int64_t by) const {
    const std::int64_t place = coordinate + by;
    const int size = sizes_[at(dimension)];
    if (place >= 0 && place < size) return static_cast<int>(place);
    if (!periodic_[at(dimension)]) return none;
    const std::int64_t rest = place % size;
    return static_cast<int>(rest < 0 ? rest + size : rest);
  }

  bool operator==(const Grid&) const = default;

 private:
  static std::size_t at(int dimension) { return static_cast<std::size_t>(dimension); }
  int nearest(int dimension, std::int64_t by) const;

  std::vector<int> sizes_;
  std::vector<int> periodic_;
  int ranks_ = 1;
};

}  // namespace mpress::schedule
