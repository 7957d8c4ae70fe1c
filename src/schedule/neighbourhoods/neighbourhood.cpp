#include "schedule/neighbourhoods/neighbourhood.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <utility>

#include "schedule/builder.hpp"

namespace mpress::schedule {
namespace {

/// All offsets of the cube of that radius whose norm, as `add` folds it, is within the bounds.
template <class Add>
std::vector<int> ball(int dimensions, int radius, int inner, Add add) {
  require_at_least("dimensions", dimensions, 0);
  require_at_least("inner", inner, -1);
  require_at_least("radius", radius, inner);
  std::vector<int> offsets;
  if (radius < 0) return offsets;
  const auto d = static_cast<std::size_t>(dimensions);
  std::vector<int> offset(d, -radius);
  constexpr auto most = static_cast<std::size_t>(std::numeric_limits<int>::max());
  for (bool is_over = false; !is_over;) {
    std::int64_t norm = 0;
    for (const int c : offset) norm = add(norm, std::int64_t{std::abs(c)});
    if (norm > inner && norm <= radius) offsets.insert(offsets.end(), offset.begin(), offset.end());
    if (offsets.size() > most) throw std::invalid_argument("the neighbourhood is too large");
    is_over = true;
    for (std::size_t j = d; j-- > 0;) {
      if (offset[j]++ < radius) {
        is_over = false;
        break;
      }
      offset[j] = -radius;
    }
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

std::vector<int> moore(int dimensions, int radius, int inner) {
  return ball(dimensions, radius, inner,
              [](std::int64_t norm, std::int64_t c) { return std::max(norm, c); });
}

std::vector<int> von_neumann(int dimensions, int radius, int inner) {
  return ball(dimensions, radius, inner,
              [](std::int64_t norm, std::int64_t c) { return norm + c; });
}

}  // namespace mpress::schedule
