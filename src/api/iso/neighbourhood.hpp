// The neighbourhood of a communicator: an attribute, which duplicates of it share.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "api/iso/cartesian.hpp"
#include "coll/neighbourhoods/plans.hpp"
#include "schedule/neighbourhoods/neighbourhood.hpp"

namespace mpress::api {

/// As one process has it. Never changes.
struct IsoNeighbourhood {
  std::shared_ptr<const engine::NeighbourPlans> plans;
  std::vector<int> sources;  ///< ranks, one for each tuple, or MPI_PROC_NULL
  std::vector<int> targets;

  const schedule::Neighbourhood& list() const { return plans->list(); }
};

/// Reads hints of an info into `hints`, each of which may be missing.
Wrong read_hints(MPI_Info info, engine::NeighbourHints& hints);

/// Finds the neighbourhood of `comm`.
Wrong find_neighbourhood(MPI_Comm comm, std::shared_ptr<const IsoNeighbourhood>& found);

}  // namespace mpress::api
