// The neighbourhood of a communicator: an attribute, which duplicates of it share.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "api/iso/cartesian.hpp"
#include "schedule/neighbourhoods/neighbourhood.hpp"

namespace mpress::api {

/// As one process has it. Never changes.
struct IsoNeighbourhood {
  schedule::Neighbourhood list;
  std::vector<int> coordinates;  ///< of this process
  std::vector<int> sources;      ///< ranks, one for each tuple, or MPI_PROC_NULL
  std::vector<int> targets;
};

/// Finds the neighbourhood of `comm`.
Wrong find_neighbourhood(MPI_Comm comm, std::shared_ptr<const IsoNeighbourhood>& found);

}  // namespace mpress::api
