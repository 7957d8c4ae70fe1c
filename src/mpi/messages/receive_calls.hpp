// Calls that receive.
#pragma once

#include "mpi/calls/calls.hpp"
#include "mpi/messages/mpi_receive.hpp"

namespace mpress::engine {

class Job;

/// Where a message comes from: wildcards allowed.
struct MessageSource {
  int peer = MPI_ANY_SOURCE;
  int tag = MPI_ANY_TAG;
};

/// MPI_Recv.
int receive(Job& job, const ReceiveArguments& arguments, const MessageSource& from,
            MPI_Status* status);

/// MPI_Irecv, which counts as `op`.
int receive_later(Job& job, trace::Op op, const ReceiveArguments& arguments,
                  const MessageSource& from, MPI_Request* request);

/// MPI_Mrecv of a message that MPI holds, and its non-blocking form.
int receive_matched(Job& job, const ReceiveArguments& arguments, MPI_Message* message,
                    MPI_Status* status);
int receive_matched_later(Job& job, const ReceiveArguments& arguments, MPI_Message* message,
                          MPI_Request* request);

}  // namespace mpress::engine
