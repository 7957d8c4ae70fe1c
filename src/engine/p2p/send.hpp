// The sending side of a message: raw, or a frame in its place.
#pragma once

#include <memory>

#include "engine/p2p/chunk_send.hpp"
#include "memory/buffer_pool.hpp"
#include "mpi/calls.hpp"
#include "mpi/comm_info.hpp"
#include "trace/record.hpp"
#include "trace/timeline.hpp"

namespace mpress::engine {

class Job;

/// Arguments of a sending call.
struct SendArguments {
  const void* buffer = nullptr;
  MPI_Count count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  int destination = MPI_PROC_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
};

/// What to give to MPI. The frame must live until MPI is done with `arguments.buffer`; the rest
/// ends with the sending call, which is what the timeline shows of the message.
struct Outgoing {
  SendArguments arguments;
  memory::Buffer frame;  ///< empty: the message goes raw
  /// Set where the frame only announces what send_chunks() sends.
  std::unique_ptr<ChunkSend> chunks;
  std::shared_ptr<mpi::CommInfo> comm;  ///< where there are chunks: the message's
  int error = MPI_SUCCESS;              ///< has been raised
  trace::Row* row = nullptr;            ///< the message's line in the statistics; null: not counted
  trace::Span span;                     ///< the sending call
};

/// The elements of a message in the order of its type map, without gaps; empty where packing
/// failed. `bytes` is the size of the message's data.
memory::Buffer pack_elements(Job& job, const SendArguments& arguments, std::size_t bytes);

/// Decides about a message, encodes it where that pays, and counts it. Where `error` comes back
/// set, it has been raised already.
Outgoing prepare_send(Job& job, trace::Op op, const SendArguments& arguments);

/// Sends the chunks of a message that has some; never waits for its receiver. The program's buffer
/// is free afterwards. What goes wrong is raised, and `outgoing.error`.
void send_chunks(Job& job, Outgoing& outgoing);

/// A non-blocking send.
using ImmediateSend = int (*)(const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm,
                              MPI_Request*);

/// Starts `send` of what was prepared, of which the data is offered where it is. The program gets a
/// request of mpress's. Returns an MPI error code.
int start_offered_send(Job& job, Outgoing& outgoing, ImmediateSend send, int tag,
                       MPI_Request* request);

/// Starts `send` of what was prepared, chunks included. Where it returns MPI_SUCCESS there is a
/// request, also if `outgoing.error` says that the chunks could not be sent.
int start_send(Job& job, Outgoing& outgoing, ImmediateSend send, int tag, MPI_Request* request);

}  // namespace mpress::engine
