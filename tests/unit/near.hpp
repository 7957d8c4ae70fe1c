// Numbers that are alike but for rounding.
#pragma once

#include <algorithm>
#include <cmath>

namespace check {

inline bool is_near(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), 1e-3);
}

}  // namespace check
