#include "schedule/neighbourhoods/grid.hpp"

#include <limits>
#include <stdexcept>

#include "schedule/builder.hpp"

namespace mpress::schedule {

Grid::Grid(std::span<const int> sizes, std::span<const int> periodic)
    : sizes_(sizes.begin(), sizes.end()), periodic_(periodic.begin(), periodic.end()) {
  if (sizes.size() != periodic.size())
    throw std::invalid_argument("periodic has another length than sizes");
  std::int64_t ranks = 1;
  for (const int size : sizes_) {
    require_at_least("size", size, 1);
    ranks *= size;
    if (ranks > std::numeric_limits<int>::max())
      throw std::invalid_argument("the grid has more ranks than an int can count");
  }
  for (int& flag : periodic_) flag = flag != 0;
  ranks_ = static_cast<int>(ranks);
}

void Grid::coordinates(int rank, std::span<int> coordinates) const {
  for (int j = dimensions() - 1; j >= 0; --j) {
    coordinates[at(j)] = rank % sizes_[at(j)];
    rank /= sizes_[at(j)];
  }
}

int Grid::neighbour(std::span<const int> coordinates, std::span<const int> offset, int sign) const {
  int rank = 0;
  for (int j = 0; j < dimensions(); ++j) {
    const int place = moved(j, coordinates[at(j)], std::int64_t{sign} * offset[at(j)]);
    if (place == none) return none;
    rank = rank * sizes_[at(j)] + place;
  }
  return rank;
}

int Grid::nearest(int dimension, std::int64_t by) const {
  const std::int64_t size = sizes_[at(dimension)];
  std::int64_t rest = by % size;
  if (rest < 0) rest += size;
  return static_cast<int>(2 * rest > size ? rest - size : rest);
}

void Grid::offset(int from, int to, std::span<int> offset) const {
  for (int j = dimensions() - 1; j >= 0; --j) {
    const int size = sizes_[at(j)];
    const int by = to % size - from % size;
    offset[at(j)] = periodic_[at(j)] ? nearest(j, by) : by;
    from /= size;
    to /= size;
  }
}

bool Grid::canonical(std::span<int> offset) const {
  for (int j = 0; j < dimensions(); ++j) {
    const std::int64_t by = offset[at(j)];
    if (!periodic_[at(j)] && (by >= sizes_[at(j)] || -by >= sizes_[at(j)])) return false;
  }
  for (int j = 0; j < dimensions(); ++j)
    if (periodic_[at(j)]) offset[at(j)] = nearest(j, offset[at(j)]);
  return true;
}

}  // namespace mpress::schedule
