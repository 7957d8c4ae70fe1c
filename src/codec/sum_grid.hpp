// The grids of sums in quanta (codec/grid.hpp): which serves how many contributions of which size,
// and what their sum errs by. The format of szp adds payloads on them.
#pragma once

#include <optional>

#include "codec/element.hpp"
#include "codec/grid.hpp"

namespace mpress::codec {

/// Whether the step of `abs_bound` and its inverse are normal numbers of the type. Where not,
/// encode() keeps the elements as they are.
bool resolvable(ElementType type, double abs_bound);

/// The grid of each of `summands` payloads, of elements of at most `most`, on which their sum errs
/// by no more than `bound`, and every finite element has a quantum; empty where quanta cannot tell
/// it. docs/codecs.md, Reductions.
std::optional<Grid> summand_grid(ElementType type, double bound, int summands, double most);

/// The grounds of a sum's grid: the bound on its error, and a magnitude that no element is
/// beyond.
struct Grounds {
  double bound = 0;
  double most = 0;

  bool operator==(const Grounds&) const = default;
};

/// Coarse grounds, the bound a little less, the magnitude a little more: bounds that are relative
/// change with the elements, and few such steps serve many.
Grounds coarse(const Grounds& exact);

/// The greatest element up to which sums within an absolute `bound` go by one grid, whatever they
/// bring, so that nobody need look for the greatest first; 0: there is none.
double covered(ElementType type, double bound, int summands);

/// That grid, for elements that nobody has looked at: those beyond covered() have no quantum, nor
/// have some that are next to it.
std::optional<Grid> blind_grid(ElementType type, double bound, int summands);

/// The greatest element up to which all have a quantum on that grid, as they are and as decoded.
double reached(const Grid& blind);

/// The opposite, of any such grid: what the sum errs by at most, the rounding of its last bits
/// included. Not above the bound that summand_grid() made it of. The same place derives it.
double bound_of_sum(ElementType type, const Grid& each, int summands, double most);

}  // namespace mpress::codec
