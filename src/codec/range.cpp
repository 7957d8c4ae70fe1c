#include "codec/range.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "codec/float_environment.hpp"
#include "codec/isa.hpp"

namespace mpress::codec {
namespace {

// Floats compare like these integers, so that the reduction is one of integers: it vectorises,
// and its result does not depend on the order.
template <typename Int>
[[gnu::always_inline]] inline Int ordered(Int bits) {
  return bits ^ ((bits >> (8 * sizeof(Int) - 1)) & std::numeric_limits<Int>::max());
}

template <typename Int>
struct Keys {
  Int min = std::numeric_limits<Int>::max();
  Int max = std::numeric_limits<Int>::min();
  Int all_finite = -1;  ///< else 0
};

template <typename Int, int mantissa_bits>
[[gnu::always_inline]] inline Keys<Int> reduce(const unsigned char* data, std::size_t count) {
  constexpr Int exponent = (std::numeric_limits<Int>::max() >> mantissa_bits) << mantissa_bits;
  Int low = std::numeric_limits<Int>::max();
  Int high = std::numeric_limits<Int>::min();
  Int all_finite = -1;
  for (std::size_t i = 0; i < count; ++i) {
    Int bits;
    std::memcpy(&bits, data + i * sizeof(Int), sizeof(Int));
    // Masks, not conditions: compilers make branches of those, and then no vectors.
    const Int finite = -static_cast<Int>((bits & exponent) != exponent);
    all_finite &= finite;
    const Int key = ordered(bits) & finite;
    low = std::min(low, key | (~finite & std::numeric_limits<Int>::max()));
    high = std::max(high, key | (~finite & std::numeric_limits<Int>::min()));
  }
  return {low, high, all_finite};
}

#if defined(__x86_64__)
template <typename Int, int mantissa_bits>
[[gnu::target("avx2")]] Keys<Int> reduce_avx2(const unsigned char* data, std::size_t count) {
  return reduce<Int, mantissa_bits>(data, count);
}
#endif

template <typename Float, typename Int, int mantissa_bits>
Range range_at(const unsigned char* data, std::size_t count) {
  Keys<Int> keys;
#if defined(__x86_64__)
  // 256 bits reach the memory's speed; longer vectors gain nothing here.
  if (host_isa() != Isa::portable) {
    keys = reduce_avx2<Int, mantissa_bits>(data, count);
  } else
#endif
  {
    keys = reduce<Int, mantissa_bits>(data, count);
  }
  const bool any_nonfinite = keys.all_finite == 0;
  if (keys.min > keys.max) return {0, 0, false, any_nonfinite};
  return {std::bit_cast<Float>(ordered(keys.min)), std::bit_cast<Float>(ordered(keys.max)), true,
          any_nonfinite};
}

}  // namespace

double Range::width() const {
  return compute([this] { return std::min(max - min, std::numeric_limits<double>::max()); });
}

void Range::join(const Range& other) {
  any_nonfinite |= other.any_nonfinite;
  if (!other.any_finite) return;
  // Zeros have an order, too: else the width's sign would depend on who joins whom.
  const auto less = [](double a, double b) {
    return a < b || (a == b && std::signbit(a) && !std::signbit(b));
  };
  compute([&] {
    if (!any_finite || less(other.min, min)) min = other.min;
    if (!any_finite || less(max, other.max)) max = other.max;
  });
  any_finite = true;
}

Extent extent_of(const Range& range) {
  return {range.min, range.max,
          (range.any_finite ? Extent::finite : 0) | (range.any_nonfinite ? Extent::nonfinite : 0)};
}

Range range_of(const Extent& extent) {
  return {extent.min, extent.max, (extent.flags & Extent::finite) != 0,
          (extent.flags & Extent::nonfinite) != 0};
}

Range finite_range(ElementType type, const void* elements, std::size_t count) {
  const auto* data = static_cast<const unsigned char*>(elements);
  return compute([&] {
    return type == ElementType::f32 ? range_at<float, std::int32_t, 23>(data, count)
                                    : range_at<double, std::int64_t, 52>(data, count);
  });
}

}  // namespace mpress::codec
