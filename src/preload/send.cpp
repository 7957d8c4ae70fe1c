// MPI_Send, MPI_Isend and their modes.

#include <utility>

#include "engine/job.hpp"
#include "engine/p2p/send.hpp"
#include "mpi/counted.hpp"
#include "preload/export.hpp"

using namespace mpress;

namespace {

using BlockingSend = decltype(&mpi::counted::Send);
using engine::ImmediateSend;

/// Counts how long a sending call has been in MPI.
void count_wait(trace::Op op, std::uint64_t begin_ns, const engine::Outgoing& out) {
  const std::uint64_t end = trace::now_ns();
  trace::add(out.row->wait_ns, end - begin_ns);
  trace::note_wait(op, begin_ns, end);
}

/// A blocking send waits for its header, and so for a receiver where its mode says so, but for no
/// chunk.
int send_in_chunks(engine::Job& job, trace::Op op, engine::Outgoing& out, ImmediateSend start,
                   int tag) {
  MPI_Request header = MPI_REQUEST_NULL;
  const int code = engine::start_send(job, out, start, tag, &header);
  if (code != MPI_SUCCESS) return code;
  const std::uint64_t begin = trace::now_ns();
  const int sent = mpi::calls().Wait(&header, MPI_STATUS_IGNORE);
  job.chunks.outbox.flush();
  count_wait(op, begin, out);
  return sent == MPI_SUCCESS ? out.error : sent;
}

int send(trace::Op op, BlockingSend call, ImmediateSend start, const engine::SendArguments& given,
         int tag) {
  engine::Job* job = engine::enter_call();
  if (!job) {
    return call(given.buffer, given.count, given.type, given.destination, tag, given.comm);
  }
  engine::Outgoing out = engine::prepare_send(*job, op, given);
  if (out.error != MPI_SUCCESS) return out.error;
  if (out.chunks) return send_in_chunks(*job, op, out, start, tag);
  const engine::SendArguments& use = out.arguments;
  if (!out.frame) return call(use.buffer, use.count, use.type, use.destination, tag, use.comm);
  const std::uint64_t begin = trace::now_ns();
  const int code = call(use.buffer, use.count, use.type, use.destination, tag, use.comm);
  count_wait(op, begin, out);
  return code;
}

int isend(trace::Op op, ImmediateSend call, const engine::SendArguments& given, int tag,
          MPI_Request* request) {
  engine::Job* job = engine::enter_call();
  if (!job) {
    return call(given.buffer, given.count, given.type, given.destination, tag, given.comm, request);
  }
  engine::Outgoing out = engine::prepare_send(*job, op, given);
  if (out.error != MPI_SUCCESS) return out.error;
  if (out.chunks && out.chunks->is_offered()) {
    return engine::start_offered_send(*job, out, call, tag, request);
  }
  const std::uint64_t message = out.chunks ? out.chunks->message() : engine::no_message;
  const int code = engine::start_send(*job, out, call, tag, request);
  if (!out.frame || code != MPI_SUCCESS) return code;
  // MPI may be done with the frame already, and then hands out one request for many sends.
  int complete = 0;
  mpi::calls().Request_get_status(*request, &complete, MPI_STATUS_IGNORE);
  if (!complete) {
    auto pending = std::make_unique<engine::Pending>();
    pending->frame = std::move(out.frame);
    pending->chunked_message = message;
    job->requests.insert(*request, std::move(pending));
  }
  return out.error;
}

}  // namespace

#define MPRESS_SEND(suffix, Count, name, start, op)                                        \
  MPRESS_EXPORT int MPI_##name##suffix(const void* buffer, Count count, MPI_Datatype type, \
                                       int destination, int tag, MPI_Comm comm) {          \
    return send(trace::Op::op, mpi::counted::name, mpi::counted::start,                    \
                {buffer, count, type, destination, comm}, tag);                            \
  }
MPRESS_BOTH_COUNTS(MPRESS_SEND, Send, Isend, send)
MPRESS_BOTH_COUNTS(MPRESS_SEND, Bsend, Ibsend, bsend)
MPRESS_BOTH_COUNTS(MPRESS_SEND, Ssend, Issend, ssend)
MPRESS_BOTH_COUNTS(MPRESS_SEND, Rsend, Irsend, rsend)

#define MPRESS_ISEND(suffix, Count, name, op)                                                      \
  MPRESS_EXPORT int MPI_##name##suffix(const void* buffer, Count count, MPI_Datatype type,         \
                                       int destination, int tag, MPI_Comm comm,                    \
                                       MPI_Request* request) {                                     \
    return isend(trace::Op::op, mpi::counted::name, {buffer, count, type, destination, comm}, tag, \
                 request);                                                                         \
  }
MPRESS_BOTH_COUNTS(MPRESS_ISEND, Isend, isend)
MPRESS_BOTH_COUNTS(MPRESS_ISEND, Ibsend, ibsend)
MPRESS_BOTH_COUNTS(MPRESS_ISEND, Issend, issend)
MPRESS_BOTH_COUNTS(MPRESS_ISEND, Irsend, irsend)
