// The sending side of a message: raw, or a frame in its place.
#pragma once

#include "link/mpi.hpp"
#include "memory/buffer_pool.hpp"
#include "trace/record.hpp"

namespace mpress::engine {

class Job;

/// Arguments of a sending call.
struct SendArguments {
  const void* buffer;
  int count;
  MPI_Datatype type;
  int destination;
  MPI_Comm comm;
};

/// What to give to MPI. The frame must live until MPI is done with `arguments.buffer`.
struct Outgoing {
  SendArguments arguments;
  memory::Buffer frame;  ///< empty: the message goes raw
  int error = MPI_SUCCESS;
  trace::Row* row = nullptr;  ///< the message's line in the statistics; null: not counted
};

/// Decides about a message, encodes it where that pays, and counts it. Where `error` comes back
/// set, it has been raised already.
Outgoing prepare_send(Job& job, trace::Op op, const SendArguments& arguments);

}  // namespace mpress::engine
