// The neighbours of a process in a communicator's topology, as MPI's neighbourhood calls have them.
#pragma once

#include <utility>
#include <vector>

namespace mpress::schedule {

/// Of one process. The kth block that it sends to another is the kth of those that come to the
/// other from it, in the order of `arrival`: in a graph that of its list, as the MPI standard has
/// it; in a Cartesian grid what goes in one direction comes from the other one, also where both
/// lead to one process.
struct Topology {
  static constexpr int none = -1;  ///< in the place of a rank: beyond a border

  std::vector<int> sources;       ///< by block that is received
  std::vector<int> destinations;  ///< by block that is sent
  std::vector<int> arrival;       ///< places in `sources`
  /// Places in `destinations` and in `sources` of what the process sends to itself.
  std::vector<std::pair<int, int>> own;
  bool has_borders = false;  ///< a neighbour is missing here
};

}  // namespace mpress::schedule
