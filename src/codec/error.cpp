#include "codec/error.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "codec/float_environment.hpp"

namespace mpress::codec {
namespace {

template <class T>
double largest_error_of(const std::byte* elements, const std::byte* got, std::size_t count) {
  double largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    T x, y;
    std::memcpy(&x, elements + i * sizeof x, sizeof x);
    std::memcpy(&y, got + i * sizeof y, sizeof y);
    if (!std::isfinite(x)) continue;
    if (!std::isfinite(y)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, std::fabs(static_cast<double>(y) - static_cast<double>(x)));
  }
  return largest;
}

}  // namespace

double largest_error(ElementType type, const void* elements, const void* got, std::size_t count) {
  const auto* const from = static_cast<const std::byte*>(elements);
  const auto* const to = static_cast<const std::byte*>(got);
  return compute([&] {
    return type == ElementType::f32 ? largest_error_of<float>(from, to, count)
                                    : largest_error_of<double>(from, to, count);
  });
}

}  // namespace mpress::codec
