// How long something takes, by size: points that were measured, and straight lines between them.
#pragma once

#include <vector>

namespace mpress::policy {

class Curve {
 public:
  struct Point {
    double bytes;
    double seconds;
  };

  /// Knows nothing.
  Curve() = default;

  /// `points` by ascending size, at least one.
  explicit Curve(std::vector<Point> points) : points_(std::move(points)) {}

  /// A time for nothing, and a rate in bytes a second.
  static Curve line(double seconds, double rate) {
    return Curve({{0, seconds}, {1e9, seconds + 1e9 / rate}});
  }

  explicit operator bool() const { return !points_.empty(); }

  const std::vector<Point>& points() const { return points_; }

  /// Seconds for a size; below the first point that one's, beyond the last at its rate.
  double at(double bytes) const;

 private:
  std::vector<Point> points_;
};

}  // namespace mpress::policy
