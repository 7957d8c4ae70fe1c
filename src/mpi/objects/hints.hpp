// Hints as a program sets them on a communicator through MPI_Info: the keys of config/knobs.hpp.
#pragma once

#include <string>

#include "core/hints.hpp"
#include "mpi/calls/calls.hpp"

namespace mpress::mpi {

using engine::CommHints;
using engine::Hints;

/// Does it mention what members of a communicator have to give alike, soundly or not?
bool has_shared_keys(MPI_Info info);

/// Reads the hints of `info`, which may be MPI_INFO_NULL. On failure returns MPI's error code for
/// it, raises nothing, and sets `error` to one sentence that names key, value and expectation.
int read_hints(MPI_Info info, Hints& hints, std::string& error);

/// Adds hints to an MPI_Info that the program is given.
void write_hints(const Hints& hints, MPI_Info info);

}  // namespace mpress::mpi
