// Persistent point-to-point requests.

#include "engine/persistent.hpp"

#include "engine/job.hpp"
#include "link/mpi.hpp"
#include "preload/export.hpp"

using namespace mpress;

namespace {

using InitSend = decltype(link::MpiCalls::Send_init);

int send_init(InitSend init, engine::StartSend start, const engine::SendArguments& given, int tag,
              MPI_Request* request) {
  const int code =
      init(given.buffer, given.count, given.type, given.destination, tag, given.comm, request);
  engine::Job* job = engine::enter_call();
  if (job && code == MPI_SUCCESS) engine::watch_persistent_send(*job, given, tag, start, *request);
  return code;
}

}  // namespace

MPRESS_EXPORT int MPI_Send_init(const void* buffer, int count, MPI_Datatype type, int destination,
                                int tag, MPI_Comm comm, MPI_Request* request) {
  return send_init(link::mpi().Send_init, link::mpi().Isend,
                   {buffer, count, type, destination, comm}, tag, request);
}

MPRESS_EXPORT int MPI_Bsend_init(const void* buffer, int count, MPI_Datatype type, int destination,
                                 int tag, MPI_Comm comm, MPI_Request* request) {
  return send_init(link::mpi().Bsend_init, link::mpi().Ibsend,
                   {buffer, count, type, destination, comm}, tag, request);
}

MPRESS_EXPORT int MPI_Ssend_init(const void* buffer, int count, MPI_Datatype type, int destination,
                                 int tag, MPI_Comm comm, MPI_Request* request) {
  return send_init(link::mpi().Ssend_init, link::mpi().Issend,
                   {buffer, count, type, destination, comm}, tag, request);
}

MPRESS_EXPORT int MPI_Rsend_init(const void* buffer, int count, MPI_Datatype type, int destination,
                                 int tag, MPI_Comm comm, MPI_Request* request) {
  return send_init(link::mpi().Rsend_init, link::mpi().Irsend,
                   {buffer, count, type, destination, comm}, tag, request);
}

MPRESS_EXPORT int MPI_Recv_init(void* buffer, int count, MPI_Datatype type, int source, int tag,
                                MPI_Comm comm, MPI_Request* request) {
  engine::Job* job = engine::enter_call();
  return job ? engine::receive_init(*job, {buffer, count, type, comm}, source, tag, request)
             : link::mpi().Recv_init(buffer, count, type, source, tag, comm, request);
}

MPRESS_EXPORT int MPI_Start(MPI_Request* request) {
  engine::Job* job = engine::enter_call();
  return job ? engine::start(*job, request) : link::mpi().Start(request);
}

MPRESS_EXPORT int MPI_Startall(int count, MPI_Request requests[]) {
  engine::Job* job = engine::enter_call();
  if (!job || job->requests.empty()) return link::mpi().Startall(count, requests);
  for (int i = 0; i < count; ++i) {
    const int code = engine::start(*job, &requests[i]);
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}
