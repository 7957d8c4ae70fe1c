// The range of a message's finite elements, which relative bounds refer to.
#pragma once

#include <cstddef>

#include "codec/element.hpp"
#include "codec/report.hpp"

namespace mpress::codec {

/// Minimum and maximum of the finite elements; both 0 where none is finite.
struct Range {
  double min = 0;
  double max = 0;
  bool any_finite = false;
  bool any_nonfinite = false;  ///< NaN or infinities

  /// max - min, at most the largest finite double.
  double width() const;

  /// Becomes that of the elements of both.
  void join(const Range& other);
};

/// As devices tell it, the sequence aside; and back.
Extent extent_of(const Range& range);
Range range_of(const Extent& extent);

/// `elements` may have any alignment.
Range finite_range(ElementType type, const void* elements, std::size_t count);

}  // namespace mpress::codec
