// The topology of a communicator, as MPI tells it.
#pragma once

#include <memory>

#include "mpi/calls/calls.hpp"
#include "schedule/neighbourhoods/topology.hpp"

namespace mpress::mpi {

using schedule::Topology;

/// Asks MPI. Null where the communicator has none, or MPI does not tell. `is_distributed_graph`: so
/// it was made, whatever MPI takes it for.
std::unique_ptr<const Topology> read_topology(MPI_Comm comm, bool is_distributed_graph);

}  // namespace mpress::mpi
