#include "policy/curve.hpp"

#include <algorithm>

namespace mpress::policy {

double Curve::at(double bytes) const {
  const auto after =
      std::find_if(points_.begin(), points_.end(), [&](Point p) { return p.bytes >= bytes; });
  if (after == points_.begin()) return after->seconds;
  const Point& low = *(after - 1);
  if (after != points_.end()) {
    const double part = (bytes - low.bytes) / (after->bytes - low.bytes);
    return low.seconds + part * (after->seconds - low.seconds);
  }
  if (points_.size() == 1) return low.seconds * bytes / low.bytes;
  const Point& before = *(after - 2);
  const double slope = (low.seconds - before.seconds) / (low.bytes - before.bytes);
  return low.seconds + std::max(slope, 0.0) * (bytes - low.bytes);
}

}  // namespace mpress::policy
