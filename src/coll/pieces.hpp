// Which member combines which elements of a reduction.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "coll/call.hpp"
#include "policy/linked.hpp"

namespace mpress::engine {

/// Up to which sizes kernels of members' devices do calls best.
inline const policy::Reach& reach_of(link::Kind between_devices) {
  const link::Attributes* const about = link::attributes_of(between_devices);
  return about && !about->is_through_host ? policy::linked : policy::by_host;
}
inline const policy::Reach& reach_of(const TeamFacts& team) {
  return reach_of(team.between_devices);
}

/// Elements of each rank's piece: piece i is the elements from [i] to [i + 1]. Of
/// MPI_Reduce_scatter as the call says, else about even, in whole units of the codecs. Where
/// contributions and results travel at the same time (`overlaps`), the root of an MPI_Reduce to one
/// of three or more has none: contributions to its piece would reach it besides the others'
/// results. To one of two by memory of the host it has all: nothing crosses a bus twice.
std::vector<std::int64_t> pieces_of(const AgreedCall& call, bool overlaps);

/// Elements of the longest part, of parts that begin so.
template <typename Begins>
std::size_t longest_of(const Begins& begins) {
  std::size_t longest = 0;
  for (std::size_t i = 1; i < begins.size(); ++i) {
    longest = std::max(longest, static_cast<std::size_t>(begins[i] - begins[i - 1]));
  }
  return longest;
}

/// May rows of all members' kernels carry parts that begin so (gpu/joint_sum.hpp)?
bool fit_in_rows(const TeamFacts& team, ElementType type, std::span<const std::int64_t> begins);

}  // namespace mpress::engine
