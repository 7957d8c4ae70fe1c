// The range of a message's finite elements, which relative bounds refer to.
#pragma once

#include <cstddef>

#include "codec/element.hpp"

namespace mpress::codec {

/// Minimum and maximum of the finite elements; both 0 where none is finite.
struct Range {
  double min = 0;
  double max = 0;
  bool any_finite = false;

  /// max - min, at most the largest finite double.
  double width() const;
};

/// `elements` may have any alignment.
Range finite_range(ElementType type, const void* elements, std::size_t count);

}  // namespace mpress::codec
