// What a relative bound of an encoder's call refers to.
#pragma once

#include <cstdint>

namespace mpress::codec {

/// The elements whose range it is.
enum class RangeOf : std::uint8_t {
  segment,  ///< each segment's own
  call,     ///< those of all segments of the call together
  given,    ///< others', which the caller tells of
};

}  // namespace mpress::codec
