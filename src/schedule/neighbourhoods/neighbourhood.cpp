#include "schedule/neighbourhoods/neighbourhood.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <utility>

#include "schedule/builder.hpp"

namespace mpress::schedule {
namespace {

/// Counts from here on are as much: that of a shell is beyond an int then, too.
constexpr std::int64_t many = std::int64_t{1} << 62;

std::int64_t times(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? many : std::min(product, many);
}

/// Moore's norm, the greatest absolute value.
struct Greatest {
  /// How many offsets have a norm of at most `radius`.
  static std::int64_t within(int dimensions, int radius) {
    std::int64_t count = radius < 0 ? 0 : 1;
    for (int j = 0; j < dimensions && radius > 0 && count < many; ++j) {
      count = times(count, 2 * std::int64_t{radius} + 1);
    }
    return count;
  }
  static std::int64_t add(std::int64_t norm, std::int64_t c) { return std::max(norm, c); }
  /// The absolute value that a norm leaves room for, and the least that leads beyond `inner`.
  static std::int64_t most(std::int64_t, int radius) { return radius; }
  static std::int64_t least(std::int64_t norm, int inner) {
    return norm > inner ? 0 : std::int64_t{inner} + 1;
  }
};

/// Von Neumann's, the sum of absolute values.
struct Sum {
  /// The sum of C(dimensions, i) C(radius, i) 2^i, as i coordinates are not 0.
  static std::int64_t within(int dimensions, int radius) {
    std::int64_t count = 0, places = 1, values = radius < 0 ? 0 : 1;
    for (int i = 0; i <= std::min(dimensions, radius); ++i) {
      count += times(places, values);
      places = times(places, dimensions - i);
      values = times(values, radius - i);
      if (count >= many || places >= many || values >= many) return many;
      places /= i + 1;
      values = times(values / (i + 1), 2);
    }
    return count;
  }
  static std::int64_t add(std::int64_t norm, std::int64_t c) { return norm + c; }
  static std::int64_t most(std::int64_t norm, int radius) { return radius - norm; }
  static std::int64_t least(std::int64_t norm, int inner) {
    return std::max<std::int64_t>(inner + 1 - norm, 0);
  }
};

template <class Norm>
int count(int dimensions, int radius, int inner) {
  require_at_least("dimensions", dimensions, 0);
  require_at_least("inner", inner, -1);
  require_at_least("radius", radius, inner);
  const std::int64_t outer = Norm::within(dimensions, radius);
  const std::int64_t found = outer - Norm::within(dimensions, inner);
  if (outer >= many || times(found, std::max(dimensions, 1)) > std::numeric_limits<int>::max()) {
    throw std::invalid_argument("the neighbourhood is too large");
  }
  return static_cast<int>(found);
}

/// Counts up through the offsets whose norm is above `inner` and at most `radius`. Every beginning
/// has an end among them, so no time is lost on other offsets.
template <class Norm>
class Odometer {
 public:
  Odometer(int dimensions, int radius, int inner)
      : radius_(radius),
        inner_(inner),
        offset_(static_cast<std::size_t>(dimensions)),
        norms_(offset_.size() + 1) {
    restart(0);
  }

  std::span<const int> offset() const { return offset_; }

  /// To the next one, if there is one.
  void step() {
    for (std::size_t j = offset_.size(); j-- > 0;) {
      std::int64_t next = std::int64_t{offset_[j]} + 1;
      const std::int64_t least = j + 1 == offset_.size() ? Norm::least(norms_[j], inner_) : 0;
      if (-least < next && next < least) next = least;
      if (next > Norm::most(norms_[j], radius_)) continue;
      set(j, next);
      return restart(j + 1);
    }
  }

 private:
  void set(std::size_t j, std::int64_t value) {
    offset_[j] = static_cast<int>(value);
    norms_[j + 1] = Norm::add(norms_[j], std::abs(value));
  }
  /// Coordinates from `j` on become the least ones.
  void restart(std::size_t j) {
    for (; j < offset_.size(); ++j) set(j, -Norm::most(norms_[j], radius_));
  }

  const int radius_;
  const int inner_;
  std::vector<int> offset_;
  std::vector<std::int64_t> norms_;  ///< of the coordinates before each
};

template <class Norm>
std::vector<int> list(int dimensions, int radius, int inner, int most) {
  const int number = std::min(count<Norm>(dimensions, radius, inner), most);
  std::vector<int> offsets;
  if (number <= 0 || dimensions == 0) return offsets;
  offsets.reserve(static_cast<std::size_t>(number) * static_cast<std::size_t>(dimensions));
  Odometer<Norm> odometer(dimensions, radius, inner);
  for (int i = 0; i < number; ++i, odometer.step()) {
    offsets.insert(offsets.end(), odometer.offset().begin(), odometer.offset().end());
  }
  return offsets;
}

}  // namespace

Neighbourhood::Neighbourhood(Grid grid, int count, std::span<const int> offsets)
    : grid_(std::move(grid)), count_(count), given_(offsets.begin(), offsets.end()) {
  require_at_least("count", count, 0);
  if (offsets.size() != at(count) * at(dimensions()))
    throw std::invalid_argument("offsets are not an element for each dimension of each neighbour");
  canonical_ = given_;
  possible_.resize(at(count));
  for (int i = 0; i < count; ++i) {
    const std::span one = std::span(canonical_).subspan(at(i) * at(dimensions()), at(dimensions()));
    possible_[at(i)] = grid_.canonical(one);
  }
}

bool Neighbourhood::is_self(int neighbour) const {
  return is_possible(neighbour) &&
         std::ranges::all_of(canonical(neighbour), [](int c) { return c == 0; });
}

std::uint64_t Neighbourhood::hash() const {
  // FNV-1a over words, with the mixing of splitmix64 at each.
  std::uint64_t hash = 0xCBF29CE484222325;
  const auto add = [&hash](int word) {
    hash = (hash ^ static_cast<std::uint32_t>(word)) * 0x100000001B3;
    hash = (hash ^ (hash >> 30)) * 0xBF58476D1CE4E5B9;
    hash ^= hash >> 31;
  };
  add(dimensions());
  for (int j = 0; j < dimensions(); ++j) add(grid_.size(j)), add(grid_.is_periodic(j));
  add(count_);
  for (const int c : given_) add(c);
  return hash;
}

int moore_count(int dimensions, int radius, int inner) {
  return count<Greatest>(dimensions, radius, inner);
}

int von_neumann_count(int dimensions, int radius, int inner) {
  return count<Sum>(dimensions, radius, inner);
}

std::vector<int> moore(int dimensions, int radius, int inner, int most) {
  return list<Greatest>(dimensions, radius, inner, most);
}

std::vector<int> von_neumann(int dimensions, int radius, int inner, int most) {
  return list<Sum>(dimensions, radius, inner, most);
}

}  // namespace mpress::schedule
