// MPI_Send, MPI_Isend and their modes.

#include <utility>

#include "core/asked.hpp"
#include "mpi/calls/counted.hpp"
#include "mpi/job/job.hpp"
#include "mpi/messages/send.hpp"
#include "preload/entered.hpp"
#include "preload/export.hpp"

using namespace mpress;

namespace {

using engine::BlockingSend;
using engine::ImmediateSend;

using engine::SendCall;

int send(const SendCall& counted, BlockingSend call, ImmediateSend start,
         const engine::SendArguments& given, int tag) {
  engine::Job* job = preload::enter_call();
  if (!job || (job->progress.idle() && engine::count_as_before(*job, counted, given))) {
    return call(given.buffer, given.count, given.type, given.destination, tag, given.comm);
  }
  engine::Outgoing out = engine::prepare_send(*job, counted, given);
  if (out.error != MPI_SUCCESS) return out.error;
  if (out.data) return engine::send_data(*job, std::move(out), start, tag);
  return engine::send_now(*job, out, call, start, tag);
}

int isend(const SendCall& counted, ImmediateSend call, const engine::SendArguments& given, int tag,
          MPI_Request* request) {
  engine::Job* job = preload::enter_call();
  if (!job || engine::count_as_before(*job, counted, given)) {
    return call(given.buffer, given.count, given.type, given.destination, tag, given.comm, request);
  }
  engine::Outgoing out = engine::prepare_send(*job, counted, given);
  if (out.error != MPI_SUCCESS) return out.error;
  const engine::SendArguments& use = out.arguments;
  if (out.is_raw()) {
    return call(use.buffer, use.count, use.type, use.destination, tag, use.comm, request);
  }
  return engine::send_later(*job, std::move(out), call, tag, request);
}

}  // namespace

#define MPRESS_SEND(suffix, Count, name, start, op, buffer_stays)                                \
  MPRESS_EXPORT int MPI_##name##suffix(const void* buffer, Count count, MPI_Datatype type,       \
                                       int destination, int tag, MPI_Comm comm) {                \
    return send(                                                                                 \
        {trace::Op::op, Family::p2p, buffer_stays}, mpi::counted::name, mpi::counted::start,     \
        {buffer, count, type, destination, comm, engine::asked_spec(), engine::asked_outcome()}, \
        tag);                                                                                    \
  }
MPRESS_BOTH_COUNTS(MPRESS_SEND, Send, Isend, send, true)
MPRESS_BOTH_COUNTS(MPRESS_SEND, Bsend, Ibsend, bsend, false)
MPRESS_BOTH_COUNTS(MPRESS_SEND, Ssend, Issend, ssend, true)
MPRESS_BOTH_COUNTS(MPRESS_SEND, Rsend, Irsend, rsend, true)

#define MPRESS_ISEND(suffix, Count, name, op, buffer_stays)                                      \
  MPRESS_EXPORT int MPI_##name##suffix(const void* buffer, Count count, MPI_Datatype type,       \
                                       int destination, int tag, MPI_Comm comm,                  \
                                       MPI_Request* request) {                                   \
    return isend(                                                                                \
        {trace::Op::op, Family::p2p, buffer_stays}, mpi::counted::name,                          \
        {buffer, count, type, destination, comm, engine::asked_spec(), engine::asked_outcome()}, \
        tag, request);                                                                           \
  }
MPRESS_BOTH_COUNTS(MPRESS_ISEND, Isend, isend, true)
MPRESS_BOTH_COUNTS(MPRESS_ISEND, Ibsend, ibsend, false)
MPRESS_BOTH_COUNTS(MPRESS_ISEND, Issend, issend, false)
MPRESS_BOTH_COUNTS(MPRESS_ISEND, Irsend, irsend, true)
