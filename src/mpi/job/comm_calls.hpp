// The calls that give a communicator hints, or tell them. Where mpress is off they find no hints.
#pragma once

#include "mpi/calls/calls.hpp"
#include "mpi/objects/hints.hpp"

namespace mpress::engine {

/// Reads the hints of an MPI_Info that is given together with `comm`. Where one is wrong, says so
/// on standard error, raises MPI's error on `comm` and returns its code.
int take_hints(MPI_Comm comm, MPI_Info info, mpi::Hints& hints);

/// Gives hints to a communicator that MPI has made; to none where it has not. Returns `code`, what
/// MPI's call returned.
int give_hints(const mpi::Hints& hints, const MPI_Comm* created, int code);

/// The same for a communicator that came from no other. Wrong hints are raised on itself, and then
/// it is freed.
int give_first_hints(MPI_Info info, MPI_Comm* created, int code);

int set_info(MPI_Comm comm, MPI_Info info);
int get_info(MPI_Comm comm, MPI_Info* info);

}  // namespace mpress::engine
