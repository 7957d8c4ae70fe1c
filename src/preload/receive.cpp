// MPI_Recv, MPI_Irecv, MPI_Sendrecv and MPI_Sendrecv_replace.

#include "engine/blocking.hpp"
#include "engine/finished_request.hpp"
#include "engine/job.hpp"
#include "link/mpi.hpp"
#include "preload/export.hpp"

using namespace mpress;

MPRESS_EXPORT int MPI_Recv(void* buffer, int count, MPI_Datatype type, int source, int tag,
                           MPI_Comm comm, MPI_Status* status) {
  engine::Job* job = engine::enter_call();
  return job ? engine::receive(*job, {buffer, count, type, comm}, source, tag, status)
             : link::mpi().Recv(buffer, count, type, source, tag, comm, status);
}

MPRESS_EXPORT int MPI_Irecv(void* buffer, int count, MPI_Datatype type, int source, int tag,
                            MPI_Comm comm, MPI_Request* request) {
  const link::MpiCalls& mpi = link::mpi();
  engine::Job* job = engine::enter_call();
  if (!job || source == MPI_PROC_NULL) {
    return mpi.Irecv(buffer, count, type, source, tag, comm, request);
  }
  const engine::ReceiveArguments arguments{buffer, count, type, comm};
  auto pending = std::make_unique<engine::Pending>();
  engine::Receive& receive = pending->receive.emplace();
  const bool watched = receive.watch(*job, trace::Op::irecv, arguments);
  if (job->pacer.active()) receive.travels_when_posted();
  std::shared_lock<std::shared_mutex> posting;
  if (job->threaded) posting = job->probed.posting();
  if (const auto probed = job->probed.take(comm, source, tag)) {
    MPI_Status status;
    const int code = probed->deliver(*job, trace::Op::irecv, arguments, &status);
    return engine::make_finished_request(status, code, request);
  }
  const int code =
      mpi.Irecv(receive.buffer(), receive.count(), receive.type(), source, tag, comm, request);
  if (code == MPI_SUCCESS && watched) job->requests.insert(*request, std::move(pending));
  return code;
}

MPRESS_EXPORT int MPI_Sendrecv(const void* send_buffer, int send_count, MPI_Datatype send_type,
                               int destination, int send_tag, void* receive_buffer,
                               int receive_count, MPI_Datatype receive_type, int source,
                               int receive_tag, MPI_Comm comm, MPI_Status* status) {
  engine::Job* job = engine::enter_call();
  if (!job) {
    return link::mpi().Sendrecv(send_buffer, send_count, send_type, destination, send_tag,
                                receive_buffer, receive_count, receive_type, source, receive_tag,
                                comm, status);
  }
  return engine::exchange(*job, {send_buffer, send_count, send_type, destination, comm}, send_tag,
                          {receive_buffer, receive_count, receive_type, comm}, source, receive_tag,
                          status);
}

MPRESS_EXPORT int MPI_Sendrecv_replace(void* buffer, int count, MPI_Datatype type, int destination,
                                       int send_tag, int source, int receive_tag, MPI_Comm comm,
                                       MPI_Status* status) {
  engine::Job* job = engine::enter_call();
  if (!job) {
    return link::mpi().Sendrecv_replace(buffer, count, type, destination, send_tag, source,
                                        receive_tag, comm, status);
  }
  return engine::exchange_in_place(*job, {buffer, count, type, destination, comm}, send_tag,
                                   {buffer, count, type, comm}, source, receive_tag, status);
}
