// MPI_Send, MPI_Isend and their modes.

#include "engine/job.hpp"
#include "engine/send.hpp"
#include "link/mpi.hpp"
#include "preload/export.hpp"

using namespace mpress;

namespace {

using BlockingSend = decltype(link::MpiCalls::Send);
using ImmediateSend = decltype(link::MpiCalls::Isend);

int send(trace::Op op, BlockingSend call, const engine::SendArguments& given, int tag) {
  engine::Job* job = engine::enter_call();
  if (!job) {
    return call(given.buffer, given.count, given.type, given.destination, tag, given.comm);
  }
  const engine::Outgoing out = engine::prepare_send(*job, op, given);
  if (out.error != MPI_SUCCESS) return out.error;
  const engine::SendArguments& use = out.arguments;
  if (!out.frame) return call(use.buffer, use.count, use.type, use.destination, tag, use.comm);
  const std::uint64_t begin = trace::now_ns();
  const int code = call(use.buffer, use.count, use.type, use.destination, tag, use.comm);
  trace::add(out.row->wait_ns, trace::now_ns() - begin);
  return code;
}

int isend(trace::Op op, ImmediateSend call, const engine::SendArguments& given, int tag,
          MPI_Request* request) {
  engine::Job* job = engine::enter_call();
  if (!job) {
    return call(given.buffer, given.count, given.type, given.destination, tag, given.comm,
                request);
  }
  engine::Outgoing out = engine::prepare_send(*job, op, given);
  if (out.error != MPI_SUCCESS) return out.error;
  const engine::SendArguments& use = out.arguments;
  const int code =
      call(use.buffer, use.count, use.type, use.destination, tag, use.comm, request);
  // MPI may be done with the frame already, and then hands out one request for many sends.
  int complete = 0;
  if (out.frame && code == MPI_SUCCESS) {
    link::mpi().Request_get_status(*request, &complete, MPI_STATUS_IGNORE);
  }
  if (out.frame && code == MPI_SUCCESS && !complete) {
    auto pending = std::make_unique<engine::Pending>();
    pending->frame = std::move(out.frame);
    job->requests.insert(*request, std::move(pending));
  }
  return code;
}

}  // namespace

MPRESS_EXPORT int MPI_Send(const void* buffer, int count, MPI_Datatype type, int destination,
                           int tag, MPI_Comm comm) {
  return send(trace::Op::send, link::mpi().Send, {buffer, count, type, destination, comm}, tag);
}

MPRESS_EXPORT int MPI_Bsend(const void* buffer, int count, MPI_Datatype type, int destination,
                            int tag, MPI_Comm comm) {
  return send(trace::Op::bsend, link::mpi().Bsend, {buffer, count, type, destination, comm}, tag);
}

MPRESS_EXPORT int MPI_Ssend(const void* buffer, int count, MPI_Datatype type, int destination,
                            int tag, MPI_Comm comm) {
  return send(trace::Op::ssend, link::mpi().Ssend, {buffer, count, type, destination, comm}, tag);
}

MPRESS_EXPORT int MPI_Rsend(const void* buffer, int count, MPI_Datatype type, int destination,
                            int tag, MPI_Comm comm) {
  return send(trace::Op::rsend, link::mpi().Rsend, {buffer, count, type, destination, comm}, tag);
}

MPRESS_EXPORT int MPI_Isend(const void* buffer, int count, MPI_Datatype type, int destination,
                            int tag, MPI_Comm comm, MPI_Request* request) {
  return isend(trace::Op::isend, link::mpi().Isend, {buffer, count, type, destination, comm}, tag,
               request);
}

MPRESS_EXPORT int MPI_Ibsend(const void* buffer, int count, MPI_Datatype type, int destination,
                             int tag, MPI_Comm comm, MPI_Request* request) {
  return isend(trace::Op::ibsend, link::mpi().Ibsend, {buffer, count, type, destination, comm},
               tag, request);
}

MPRESS_EXPORT int MPI_Issend(const void* buffer, int count, MPI_Datatype type, int destination,
                             int tag, MPI_Comm comm, MPI_Request* request) {
  return isend(trace::Op::issend, link::mpi().Issend, {buffer, count, type, destination, comm},
               tag, request);
}

MPRESS_EXPORT int MPI_Irsend(const void* buffer, int count, MPI_Datatype type, int destination,
                             int tag, MPI_Comm comm, MPI_Request* request) {
  return isend(trace::Op::irsend, link::mpi().Irsend, {buffer, count, type, destination, comm},
               tag, request);
}
