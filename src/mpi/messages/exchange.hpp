// Sends and receives in one call.
#pragma once

#include "mpi/calls/calls.hpp"
#include "mpi/messages/receive_calls.hpp"
#include "mpi/messages/send.hpp"

namespace mpress::engine {

class Job;

/// MPI_Sendrecv.
int exchange(Job& job, const SendArguments& send, int send_tag, const ReceiveArguments& receive,
             const MessageSource& from, MPI_Status* status);

/// MPI_Sendrecv_replace: both arguments name the same buffer.
int exchange_in_place(Job& job, const SendArguments& send, int send_tag,
                      const ReceiveArguments& receive, const MessageSource& from,
                      MPI_Status* status);

/// A send whose buffer will be overwritten at once: encoded, or else copied.
Outgoing set_aside(Job& job, trace::Op op, const SendArguments& send);

/// MPI_Isendrecv, with a send that is prepared. The request is that of the receive, and completes
/// with both: MPICH 5.0 leaves the status of its own MPI_Isendrecv undefined.
int exchange_later(Job& job, Outgoing out, int send_tag, trace::Op op,
                   const ReceiveArguments& receive, const MessageSource& from,
                   MPI_Request* request);

}  // namespace mpress::engine
