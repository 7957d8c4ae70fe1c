// Persistent requests: encoded anew at every start.
#pragma once

#include "mpi/calls/calls.hpp"
#include "mpi/messages/mpi_receive.hpp"
#include "mpi/messages/send.hpp"

namespace mpress::engine {

class Job;

/// Files a persistent send that MPI made as `request`: its starts are counted, and may be
/// compressed, as long as the program keeps its communicator.
void watch_persistent_send(Job& job, const SendArguments& arguments, bool buffer_stays, int tag,
                           ImmediateSend start_send, MPI_Request request);

/// Makes a persistent receive and files it, since a probe may have its message.
int receive_init(Job& job, const ReceiveArguments& arguments, int source, int tag,
                 MPI_Request* request);

/// MPI_Start. A send that compresses starts a send of its frame in the request's place; a receive
/// that a probe has satisfied already completes at once.
int start(Job& job, MPI_Request* request);

}  // namespace mpress::engine
