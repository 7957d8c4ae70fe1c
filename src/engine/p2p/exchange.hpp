// Receives and exchanges in one call.
#pragma once

#include "engine/p2p/receive.hpp"
#include "engine/p2p/send.hpp"
#include "mpi/calls.hpp"

namespace mpress::engine {

class Job;

/// Where a message comes from: wildcards allowed.
struct Envelope {
  int peer = MPI_ANY_SOURCE;
  int tag = MPI_ANY_TAG;
};

/// MPI_Recv.
int receive(Job& job, const ReceiveArguments& arguments, const Envelope& from, MPI_Status* status);

/// MPI_Irecv, which counts as `op`.
int receive_later(Job& job, trace::Op op, const ReceiveArguments& arguments, const Envelope& from,
                  MPI_Request* request);

/// MPI_Mrecv of a message that MPI holds, and its non-blocking form.
int receive_matched(Job& job, const ReceiveArguments& arguments, MPI_Message* message,
                    MPI_Status* status);
int receive_matched_later(Job& job, const ReceiveArguments& arguments, MPI_Message* message,
                          MPI_Request* request);

/// MPI_Sendrecv.
int exchange(Job& job, const SendArguments& send, int send_tag, const ReceiveArguments& receive,
             const Envelope& from, MPI_Status* status);

/// MPI_Sendrecv_replace: both arguments name the same buffer.
int exchange_in_place(Job& job, const SendArguments& send, int send_tag,
                      const ReceiveArguments& receive, const Envelope& from, MPI_Status* status);

/// A send whose buffer will be overwritten at once: encoded, or else copied.
Outgoing set_aside(Job& job, trace::Op op, const SendArguments& send);

/// MPI_Isendrecv, with a send that is prepared. The request is that of the receive, and completes
/// with both: MPICH 5.0 leaves the status of its own MPI_Isendrecv undefined.
int exchange_later(Job& job, Outgoing out, int send_tag, trace::Op op,
                   const ReceiveArguments& receive, const Envelope& from, MPI_Request* request);

}  // namespace mpress::engine
