// The range of the finite elements: the same on every instruction set, whatever surrounds them.

#include "codec/range.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "../codec/guarded.hpp"
#include "check.hpp"
#include "codec/isa.hpp"

using namespace mpress;

namespace {

template <typename Float>
void compare(const std::vector<Float>& values, bool any, double min, double max) {
  const ElementType type = sizeof(Float) == 4 ? ElementType::f32 : ElementType::f64;
  // From where memory ends, and from an address of no alignment.
  static Guarded guarded(1 << 12);
  const std::size_t bytes = values.size() * sizeof(Float);
  unsigned char* const last = guarded.last(bytes);
  std::vector<char> shifted(bytes + 1);
  if (!values.empty()) {
    std::memcpy(last, values.data(), bytes);
    std::memcpy(shifted.data() + 1, values.data(), bytes);
  }
  for (Isa isa : {Isa::portable, Isa::avx2, Isa::avx512}) {
    if (!set_host_isa(isa)) continue;
    for (const void* data :
         {static_cast<const void*>(last), static_cast<const void*>(shifted.data() + 1)}) {
      const codec::Range range = codec::finite_range(type, data, values.size());
      CHECK(range.any_finite == any && range.min == min && range.max == max);
      const bool strange = !std::all_of(values.begin(), values.end(),
                                        [](Float value) { return std::isfinite(value); });
      CHECK(range.any_nonfinite == strange);
    }
  }
}

template <typename Float>
void test_type() {
  using Limits = std::numeric_limits<Float>;
  const Float inf = Limits::infinity(), nan = Limits::quiet_NaN();
  compare<Float>({}, false, 0, 0);
  compare<Float>({nan, inf, -inf, -nan}, false, 0, 0);
  compare<Float>({nan, 3, inf}, true, 3, 3);
  compare<Float>({-1, nan, -2, -inf}, true, -2, -1);
  compare<Float>({Limits::denorm_min(), -Limits::denorm_min()}, true, -Limits::denorm_min(),
                 Limits::denorm_min());
  compare<Float>({Limits::max(), Limits::lowest()}, true, Limits::lowest(), Limits::max());
  std::mt19937 random(7);
  for (std::size_t count = 1; count < 200; ++count) {
    std::vector<Float> values(count);
    double min = std::numeric_limits<double>::infinity(), max = -min;
    for (Float& value : values) {
      value = random() % 8 == 0 ? (random() % 2 ? nan : -inf)
                                : static_cast<Float>(random()) - Float(1u << 31);
      if (!std::isfinite(value)) continue;
      min = std::fmin(min, value);
      max = std::fmax(max, value);
    }
    const bool any = min <= max;
    compare(values, any, any ? min : 0, any ? max : 0);
  }
}

}  // namespace

int main() {
  test_type<float>();
  test_type<double>();
  // Joined in any order they are the same, also in the signs of zeros.
  const codec::Range minus{-0.0, -0.0, true}, plus{0.0, 0.0, true}, none{0, 0, false, true};
  for (auto [a, b] : {std::pair(minus, plus), std::pair(plus, minus)}) {
    codec::Range joined = none;
    joined.join(a);
    joined.join(b);
    joined.join(none);
    CHECK(joined.any_finite && joined.any_nonfinite && !std::signbit(joined.width()));
    CHECK(std::signbit(joined.min) && !std::signbit(joined.max));
  }
  CHECK(codec::Range({-1e308, 1e308, true}).width() == 1.7976931348623157e308);
  return check::failures != 0;
}
