// Blocking receives and exchanges.
#pragma once

#include "engine/receive.hpp"
#include "engine/send.hpp"
#include "link/mpi.hpp"

namespace mpress::engine {

class Job;

/// MPI_Recv.
int receive(Job& job, const ReceiveArguments& arguments, int source, int tag, MPI_Status* status);

/// MPI_Sendrecv.
int exchange(Job& job, const SendArguments& send, int send_tag, const ReceiveArguments& receive,
             int source, int receive_tag, MPI_Status* status);

/// MPI_Sendrecv_replace: both arguments name the same buffer.
int exchange_in_place(Job& job, const SendArguments& send, int send_tag,
                      const ReceiveArguments& receive, int source, int receive_tag,
                      MPI_Status* status);

}  // namespace mpress::engine
