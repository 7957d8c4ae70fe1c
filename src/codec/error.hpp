// What a codec with a loss did to elements.
#pragma once

#include <cstddef>

#include "codec/element.hpp"

namespace mpress::codec {

/// The largest |got - element| of `count` elements of any alignment, over those that are finite;
/// infinite where one of these became something else. 0 where there are none.
double largest_error(ElementType type, const void* elements, const void* got, std::size_t count);

}  // namespace mpress::codec
