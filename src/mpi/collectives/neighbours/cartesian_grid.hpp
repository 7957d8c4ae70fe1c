// The grid of a Cartesian communicator, as schedules know it.
#pragma once

#include "mpi/calls/calls.hpp"
#include "schedule/neighbourhoods/grid.hpp"

namespace mpress::engine {

/// `comm` has one. Throws std::bad_alloc.
schedule::Grid grid_of(MPI_Comm comm);

}  // namespace mpress::engine
