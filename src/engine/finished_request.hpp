// A request for a receive that is over already: a generalized request, so that every call of MPI
// takes it.
#pragma once

#include "link/mpi.hpp"

namespace mpress::engine {

/// Makes a request that completes with `status` (its fields and count) and the error `code`.
int make_finished_request(const MPI_Status& status, int code, MPI_Request* request);

/// Copies source, tag and count, and says that nothing was cancelled; MPI_ERROR stays.
void copy_status(const MPI_Status& from, MPI_Status& to);

}  // namespace mpress::engine
