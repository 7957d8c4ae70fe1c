// A private communicator of this process alone, for what mpress asks MPI to do with its own memory.
#pragma once

#include "mpi/calls/calls.hpp"

namespace mpress::mpi {

/// MPI_COMM_NULL before open_self_comm() and after close_self_comm(). Returns errors.
MPI_Comm self_comm();

/// Not a duplicate of MPI_COMM_SELF, which would have the program's attributes.
void open_self_comm();
void close_self_comm();

}  // namespace mpress::mpi
