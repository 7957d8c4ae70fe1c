// The calls that look at or end a single request without completing it.
#pragma once

#include "mpi/calls/calls.hpp"

namespace mpress::engine {

class Job;

int request_free(Job& job, MPI_Request* request);
int cancel(Job& job, MPI_Request* request);

/// MPI_Request_get_status: what arrived is delivered, so that the program may read it, and the
/// request stays.
int request_get_status(Job& job, MPI_Request request, int* flag, MPI_Status* status);

/// MPIX_Request_is_complete, which a hook of the program's may call within MPI's progress: lets
/// MPI proceed with nothing, and the request's own operation as far as it can without.
bool is_complete(Job& job, MPI_Request request);

/// The same as request_get_status() for one of several requests, of which the null and the inactive
/// ones do not count.
int look(Job& job, MPI_Request request, bool* active, int* flag, MPI_Status* status);

}  // namespace mpress::engine
