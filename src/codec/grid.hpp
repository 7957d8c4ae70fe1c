// The grid to which a codec that quantises takes elements.
#pragma once

#include "codec/checksum.hpp"  // MPRESS_HOST_DEVICE

namespace mpress::codec {

/// The step is a little below twice the bound, so that the rounding of x * inverse and of
/// q * step leaves the limit unreached as long as |q| stays below about 2700 (f32): the loss is
/// 0.0014 bits a value, an exception would cost 40.
inline constexpr double step_shrink = 1.0 - 0x1p-10;

/// Elements become multiples of a step that is a little below twice `bound`, unless it is given.
/// One that would be off by the bound and `slack`, or more, is kept as it is. The slack is for what
/// many steps from zero is rounded: where it covers that, no element within a known range is kept
/// (summand_grid()).
struct Grid {
  double bound = 0;  ///< 0: there is no grid
  double slack = 0;
  /// Of sums of elements alone: those of quanta beyond have none, as if they were kept; 0: of as
  /// many as the type allows.
  double reach = 0;
  double step = 0;  ///< 0: what follows from the bound

  Grid() = default;
  MPRESS_HOST_DEVICE constexpr Grid(double abs_bound, double more = 0)
      : bound(abs_bound), slack(more) {}

  bool operator==(const Grid&) const = default;
};

}  // namespace mpress::codec
