// The kernels between the exchanges: averages of a cell and its neighbours. With a halo of depth k
// there are k steps for an exchange, each on a block that is a cell smaller at each side.
#include <utility>

#include "bench/operations.hpp"

namespace mpress::bench {
namespace {

constexpr int most_points = 27;

/// How far the cells of a stencil are, in elements; returns how many there are.
int distances(const Update& update, std::int64_t* found) {
  const std::int64_t row = update.extent[update.dimensions - 1];
  const std::int64_t plane = update.dimensions == 3 ? row * update.extent[1] : 0;
  const bool is_star = update.points == 5 || update.points == 7;
  const int deep = update.dimensions == 3 ? 1 : 0;
  int count = 0;
  for (int a = -deep; a <= deep; ++a) {
    for (int b = -1; b <= 1; ++b) {
      for (int c = -1; c <= 1; ++c) {
        if (!is_star || a * a + b * b + c * c <= 1) found[count++] = a * plane + b * row + c;
      }
    }
  }
  return count;
}

template <int points>
void step_row(const double* from, double* to, std::int64_t cells, const std::int64_t* distance) {
  for (std::int64_t i = 0; i < cells; ++i) {
    double sum = 0;
    for (int p = 0; p < points; ++p) sum += from[i + distance[p]];
    to[i] = sum * (1.0 / points);
  }
}

}  // namespace

void update(const Update& what) {
  std::int64_t distance[most_points];
  const int points = distances(what, distance);
  const bool is_deep = what.dimensions == 3;
  const std::int64_t planes = is_deep ? what.extent[0] : 1;
  const std::int64_t rows = what.extent[what.dimensions - 2];
  const std::int64_t cells = what.extent[what.dimensions - 1];
  const double* from = what.field;
  double* to = what.results[0];
  double* other = what.results[1];
  for (int step = 1; step <= what.depth; ++step) {
    for (std::int64_t z = is_deep ? step : 0; z < (is_deep ? planes - step : 1); ++z) {
      for (std::int64_t y = step; y < rows - step; ++y) {
        const std::int64_t first = (z * rows + y) * cells + step;
        const std::int64_t length = cells - 2 * step;
        switch (points) {
          case 5: step_row<5>(from + first, to + first, length, distance); break;
          case 7: step_row<7>(from + first, to + first, length, distance); break;
          case 9: step_row<9>(from + first, to + first, length, distance); break;
          default: step_row<27>(from + first, to + first, length, distance); break;
        }
      }
    }
    from = to;
    std::swap(to, other);
  }
}

}  // namespace mpress::bench
