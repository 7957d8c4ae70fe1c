// Costs by which members of a collective call choose schedules.
#pragma once

#include <array>

#include "link/list.hpp"
#include "policy/methods.hpp"

namespace mpress::policy {

/// Costs of links, as all ranks of MPI_COMM_WORLD agreed in MPI_Init: of each number the one of
/// the rank that has it worst. The same on all of them.
struct AgreedCosts {
  CollectiveCosts host;  ///< memory of the host
  /// Of devices: by the link at this position of the list within a host; the last: by MPI.
  std::array<CollectiveCosts, link::count_between_devices + 1> devices;
};

}  // namespace mpress::policy
