#include "codec/sum_grid.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "codec/float_environment.hpp"
#include "codec/szp/format.hpp"

namespace mpress::codec {
namespace {

template <class T>
std::optional<Grid> summand_grid_as(double bound, int summands, double most) {
  constexpr double u = std::numeric_limits<T>::epsilon() / 2;
  const double rounding = (sizeof(T) == 4 ? 2.5 : summands + 2.0) * u;
  const double each = (bound / summands - rounding * most) / (1 + 2 * rounding);
  const double slack = 3 * u * most;
  const Grid grid{each - slack, slack};
  if (!(grid.bound > 0) || !(each <= bound)) return std::nullopt;
  const double quantum = most / (2 * grid.bound * step_shrink) + 1;
  if (quantum > szp::Traits<T>::max_quantum) return std::nullopt;
  if (quantum * summands >= static_cast<double>(szp::Traits<T>::sum_limit)) return std::nullopt;
  return grid;
}

/// The greater of what sums of quanta and of elements err by; those of doubles round each time.
template <class T>
double bound_of_sum_as(const Grid& grid, int summands, double most) {
  constexpr double u = std::numeric_limits<T>::epsilon() / 2;
  const double each = grid.bound + grid.slack;
  const double rounding = summands * u * (most + each);
  const double of_elements = sizeof(T) == 4 ? 0 : (summands - 1) * u * summands * most;
  return summands * each + rounding + std::max(rounding, of_elements);
}

}  // namespace

bool resolvable(ElementType type, double abs_bound) {
  szp::Quantizer<float> single;
  szp::Quantizer<double> full;
  return type == ElementType::f32 ? szp::quantizer_of(abs_bound, single)
                                  : szp::quantizer_of(abs_bound, full);
}

std::optional<Grid> summand_grid(ElementType type, double bound, int summands, double most) {
  return compute([&] {
    return type == ElementType::f32 ? summand_grid_as<float>(bound, summands, most)
                                    : summand_grid_as<double>(bound, summands, most);
  });
}

Grounds coarse(const Grounds& exact) {
  return compute([&]() -> Grounds {
    // Each of these operations is exact, so all members of a sum find the same.
    int of_bound = 0, of_most = 0;
    const double bound = std::floor(0x1p6 * std::frexp(exact.bound, &of_bound));
    const double most = std::ceil(0x1p3 * std::frexp(exact.most, &of_most));
    return {std::ldexp(bound, of_bound - 6), std::ldexp(most, of_most - 3)};
  });
}

double covered(ElementType type, double bound, int summands) {
  const bool is_single = type == ElementType::f32;
  constexpr int most_summands = 128;  // whose sums stay numbers of the type
  if (is_single && summands > most_summands) return 0;
  return compute([&] {
    const double most = bound / summands * (is_single ? 0x1p17 : 0x1p25);
    return std::isfinite(most) ? most : 0;
  });
}

std::optional<Grid> blind_grid(ElementType type, double bound, int summands) {
  return compute([&]() -> std::optional<Grid> {
    const double most = covered(type, bound, summands);
    if (!(most > 0)) return std::nullopt;
    std::optional<Grid> grid = summand_grid(type, bound, summands, most);
    // The next quantum stands for what is not beyond, too.
    if (grid) grid->reach = std::floor(most / (2 * grid->bound * step_shrink)) - 1;
    return grid;
  });
}

double reached(const Grid& blind) {
  return compute([&] { return (blind.reach - 2) * 2 * blind.bound * step_shrink; });
}

double bound_of_sum(ElementType type, const Grid& each, int summands, double most) {
  return compute([&] {
    return type == ElementType::f32 ? bound_of_sum_as<float>(each, summands, most)
                                    : bound_of_sum_as<double>(each, summands, most);
  });
}

}  // namespace mpress::codec
