// MPI's completion calls over requests of which some need work when they complete.
//
// Each function takes the arguments of the MPI call it is named after and returns its result,
// with errors raised where MPI would. Requests that mpress does not watch pass through.
#pragma once

#include "mpi/calls/calls.hpp"
#include "trace/record.hpp"

namespace mpress::engine {

class Job;

int wait(Job& job, MPI_Request* request, MPI_Status* status);
/// `op`: what the wait counts as.
int waitall(Job& job, int count, MPI_Request requests[], MPI_Status statuses[],
            trace::Op op = trace::Op::waitall);
int waitany(Job& job, int count, MPI_Request requests[], int* index, MPI_Status* status);
int waitsome(Job& job, int count, MPI_Request requests[], int* done, int indices[],
             MPI_Status statuses[]);
int test(Job& job, MPI_Request* request, int* flag, MPI_Status* status);
int testall(Job& job, int count, MPI_Request requests[], int* flag, MPI_Status statuses[]);
int testany(Job& job, int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status);
int testsome(Job& job, int count, MPI_Request requests[], int* done, int indices[],
             MPI_Status statuses[]);

}  // namespace mpress::engine
