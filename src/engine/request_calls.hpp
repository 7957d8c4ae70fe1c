// The calls that look at or end a single request without completing it.
#pragma once

#include "link/mpi.hpp"

namespace mpress::engine {

class Job;

int request_free(Job& job, MPI_Request* request);
int cancel(Job& job, MPI_Request* request);

/// MPI_Request_get_status: what arrived is delivered, so that the program may read it, and the
/// request stays.
int request_get_status(Job& job, MPI_Request request, int* flag, MPI_Status* status);

/// Copies requests, with the stand-ins of those that have one and without those whose message is
/// not all there. True where none is left out.
bool copy_shown(Job& job, int count, const MPI_Request requests[], MPI_Request copies[]);

}  // namespace mpress::engine
