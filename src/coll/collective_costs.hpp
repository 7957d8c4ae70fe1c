// Costs by which members choose schedules.
#pragma once

#include <array>

#include "link/list.hpp"
#include "policy/methods.hpp"

namespace mpress::engine {

/// Costs of links, as all ranks of MPI_COMM_WORLD agreed in MPI_Init: of each number the one of
/// the rank that has it worst. The same on all of them.
struct CollectiveCosts {
  policy::CollectiveCosts host;  ///< memory of the host
  /// Of devices: by the link at this position of the list within a host; the last: by MPI.
  std::array<policy::CollectiveCosts, link::count_between_devices + 1> devices;
};

}  // namespace mpress::engine
