// Persistent point-to-point requests.

#include "mpi/requests/persistent.hpp"

#include "core/asked.hpp"
#include "mpi/calls/counted.hpp"
#include "mpi/job/job.hpp"
#include "preload/entered.hpp"
#include "preload/export.hpp"

using namespace mpress;

namespace {

using InitSend = decltype(&mpi::counted::Send_init);

int send_init(InitSend init, engine::ImmediateSend start, bool buffer_stays,
              const engine::SendArguments& given, int tag, MPI_Request* request) {
  const int code =
      init(given.buffer, given.count, given.type, given.destination, tag, given.comm, request);
  engine::Job* job = preload::enter_call();
  if (job && code == MPI_SUCCESS) {
    engine::watch_persistent_send(*job, given, buffer_stays, tag, start, *request);
    job->start_streams.note(*request, given.comm);
  }
  return code;
}

int recv_init(const engine::ReceiveArguments& given, int source, int tag, MPI_Request* request) {
  engine::Job* job = engine::enter_call();
  if (!job) {
    return mpi::counted::Recv_init(given.buffer, given.count, given.type, source, tag, given.comm,
                                   request);
  }
  const int code = engine::receive_init(*job, given, source, tag, request);
  if (code == MPI_SUCCESS) job->start_streams.note(*request, given.comm);
  return code;
}

}  // namespace

#define MPRESS_SEND_INIT(suffix, Count, name, start, buffer_stays)                               \
  MPRESS_EXPORT int MPI_##name##suffix(const void* buffer, Count count, MPI_Datatype type,       \
                                       int destination, int tag, MPI_Comm comm,                  \
                                       MPI_Request* request) {                                   \
    return send_init(                                                                            \
        mpi::counted::name, mpi::counted::start, buffer_stays,                                   \
        {buffer, count, type, destination, comm, engine::asked_spec(), engine::asked_outcome()}, \
        tag, request);                                                                           \
  }
MPRESS_BOTH_COUNTS(MPRESS_SEND_INIT, Send_init, Isend, true)
MPRESS_BOTH_COUNTS(MPRESS_SEND_INIT, Bsend_init, Ibsend, false)
MPRESS_BOTH_COUNTS(MPRESS_SEND_INIT, Ssend_init, Issend, false)
MPRESS_BOTH_COUNTS(MPRESS_SEND_INIT, Rsend_init, Irsend, true)

#define MPRESS_RECV_INIT(suffix, Count, ...)                                                      \
  MPRESS_EXPORT int MPI_Recv_init##suffix(void* buffer, Count count, MPI_Datatype type,           \
                                          int source, int tag, MPI_Comm comm,                     \
                                          MPI_Request* request) {                                 \
    return recv_init({buffer, count, type, comm, engine::asked_outcome()}, source, tag, request); \
  }
MPRESS_BOTH_COUNTS(MPRESS_RECV_INIT)

MPRESS_EXPORT int MPI_Start(MPI_Request* request) {
  engine::Job* job = engine::enter_call();
  if (!job) return mpi::calls().Start(request);
  const int code = job->start_streams.await(*job, {request, 1});
  return code == MPI_SUCCESS ? engine::start(*job, request) : code;
}

MPRESS_EXPORT int MPI_Startall(int count, MPI_Request requests[]) {
  engine::Job* job = engine::enter_call();
  if (!job || count <= 0 || !requests) return mpi::calls().Startall(count, requests);
  const int awaited = job->start_streams.await(*job, {requests, static_cast<std::size_t>(count)});
  if (awaited != MPI_SUCCESS) return awaited;
  if (job->requests.empty() && job->start_streams.empty()) {
    return mpi::calls().Startall(count, requests);
  }
  for (int i = 0; i < count; ++i) {
    const int code = engine::start(*job, &requests[i]);
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}
