// The keys iso_... of an MPI_Info.
#pragma once

#include <string>

#include "coll/neighbourhoods/plans.hpp"
#include "mpi/calls/calls.hpp"

namespace mpress::engine {

/// Reads what `info`, which may be MPI_INFO_NULL, says of how blocks travel. Returns an error code
/// of MPI's, with `error` one sentence that names key, value and what was expected; raises nothing.
int read_neighbour_hints(MPI_Info info, NeighbourHints& hints, std::string& error);

/// Reads one key that is true or false, as read_neighbour_hints() does.
int read_flag(MPI_Info info, const char* key, bool& flag, std::string& error);

}  // namespace mpress::engine
