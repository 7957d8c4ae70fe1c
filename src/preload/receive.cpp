// MPI_Recv, MPI_Irecv and MPI_Sendrecv.

#include "engine/job.hpp"
#include "engine/receive.hpp"
#include "engine/scratch.hpp"
#include "engine/send.hpp"
#include "link/mpi.hpp"
#include "preload/export.hpp"

using namespace mpress;

namespace {

/// Delivers what a blocking call received, and raises what goes wrong.
int deliver(engine::Job& job, engine::Receive& receive, MPI_Status& status) {
  const int code = receive.deliver(job, status);
  return code == MPI_SUCCESS ? code : receive.comm()->raise(code);
}

}  // namespace

MPRESS_EXPORT int MPI_Recv(void* buffer, int count, MPI_Datatype type, int source, int tag,
                           MPI_Comm comm, MPI_Status* given) {
  const link::MpiCalls& mpi = link::mpi();
  engine::Job* job = engine::active_job();
  engine::Receive receive;
  if (!job || !receive.watch(*job, trace::Op::recv, {buffer, count, type, comm})) {
    return mpi.Recv(buffer, count, type, source, tag, comm, given);
  }
  MPI_Status own;
  MPI_Status* status = given == MPI_STATUS_IGNORE ? &own : given;
  const std::uint64_t begin = trace::now_ns();
  const int code = mpi.Recv(receive.buffer(), receive.count(), receive.type(), source, tag, comm,
                            status);
  receive.waited(trace::now_ns() - begin);
  return code == MPI_SUCCESS ? deliver(*job, receive, *status) : code;
}

MPRESS_EXPORT int MPI_Irecv(void* buffer, int count, MPI_Datatype type, int source, int tag,
                            MPI_Comm comm, MPI_Request* request) {
  const link::MpiCalls& mpi = link::mpi();
  engine::Job* job = engine::active_job();
  if (!job || source == MPI_PROC_NULL) {
    return mpi.Irecv(buffer, count, type, source, tag, comm, request);
  }
  auto pending = std::make_unique<engine::Pending>();
  engine::Receive& receive = pending->receive.emplace();
  if (!receive.watch(*job, trace::Op::irecv, {buffer, count, type, comm})) {
    return mpi.Irecv(buffer, count, type, source, tag, comm, request);
  }
  if (job->pacer.active()) receive.travels_when_posted();
  const int code = mpi.Irecv(receive.buffer(), receive.count(), receive.type(), source, tag, comm,
                             request);
  if (code == MPI_SUCCESS) job->requests.insert(*request, std::move(pending));
  return code;
}

MPRESS_EXPORT int MPI_Sendrecv(const void* send_buffer, int send_count, MPI_Datatype send_type,
                               int destination, int send_tag, void* receive_buffer,
                               int receive_count, MPI_Datatype receive_type, int source,
                               int receive_tag, MPI_Comm comm, MPI_Status* given) {
  const link::MpiCalls& mpi = link::mpi();
  engine::Job* job = engine::active_job();
  if (!job) {
    return mpi.Sendrecv(send_buffer, send_count, send_type, destination, send_tag, receive_buffer,
                        receive_count, receive_type, source, receive_tag, comm, given);
  }
  const engine::Outgoing out = engine::prepare_send(
      *job, trace::Op::sendrecv, {send_buffer, send_count, send_type, destination, comm});
  if (out.error != MPI_SUCCESS) return out.error;
  engine::Receive receive;
  const bool watched = receive.watch(*job, trace::Op::sendrecv,
                                     {receive_buffer, receive_count, receive_type, comm});
  MPI_Status own;
  MPI_Status* status = given == MPI_STATUS_IGNORE && watched ? &own : given;
  const std::uint64_t begin = trace::now_ns();
  const int code = mpi.Sendrecv(
      out.arguments.buffer, out.arguments.count, out.arguments.type, destination, send_tag,
      watched ? receive.buffer() : receive_buffer, watched ? receive.count() : receive_count,
      watched ? receive.type() : receive_type, source, receive_tag, comm, status);
  if (!watched) return code;
  receive.waited(trace::now_ns() - begin);
  return code == MPI_SUCCESS ? deliver(*job, receive, *status) : code;
}
