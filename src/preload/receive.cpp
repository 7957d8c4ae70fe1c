// MPI_Recv and MPI_Irecv.

#include <shared_mutex>
#include <utility>

#include "engine/job.hpp"
#include "engine/p2p/exchange.hpp"
#include "mpi/counted.hpp"
#include "preload/export.hpp"

using namespace mpress;

namespace {

int irecv(const engine::ReceiveArguments& given, int source, int tag, MPI_Request* request) {
  engine::Job* job = engine::enter_call();
  if (!job || source == MPI_PROC_NULL) {
    return mpi::counted::Irecv(given.buffer, given.count, given.type, source, tag, given.comm,
                               request);
  }
  constexpr trace::Op op = trace::Op::irecv;
  std::unique_ptr<engine::Pending> pending;
  bool watched = false;
  if (engine::Receive::may_need_watching(*job, given)) {
    pending = std::make_unique<engine::Pending>();
    watched = pending->receive.emplace().watch(*job, op, given);
    if (job->pacer.active()) pending->receive->travels_when_posted();
  }
  std::shared_lock<std::shared_mutex> posting;
  if (job->threaded) posting = job->probed.posting();
  if (const auto probed = job->probed.take(given.comm, source, tag)) {
    if (!watched) {
      pending = std::make_unique<engine::Pending>();
      pending->receive.emplace().describe(*job, op, given);
    }
    const int code = probed->deliver_later(*job, *pending, request);
    if (pending->must_be_kept()) job->requests.insert(*request, std::move(pending));
    return code;
  }
  if (!watched) {
    return mpi::counted::Irecv(given.buffer, given.count, given.type, source, tag, given.comm,
                               request);
  }
  const engine::Receive& receive = *pending->receive;
  const int code = mpi::counted::Irecv(receive.buffer(), receive.count(), receive.type(), source,
                                       tag, given.comm, request);
  if (code == MPI_SUCCESS) job->requests.insert(*request, std::move(pending));
  return code;
}

}  // namespace

#define MPRESS_RECV(suffix, Count, ...)                                                        \
  MPRESS_EXPORT int MPI_Recv##suffix(void* buffer, Count count, MPI_Datatype type, int source, \
                                     int tag, MPI_Comm comm, MPI_Status* status) {             \
    engine::Job* job = engine::enter_call();                                                   \
    return job ? engine::receive(*job, {buffer, count, type, comm}, {source, tag}, status)     \
               : mpi::counted::Recv(buffer, count, type, source, tag, comm, status);           \
  }
MPRESS_BOTH_COUNTS(MPRESS_RECV)

#define MPRESS_IRECV(suffix, Count, ...)                                                        \
  MPRESS_EXPORT int MPI_Irecv##suffix(void* buffer, Count count, MPI_Datatype type, int source, \
                                      int tag, MPI_Comm comm, MPI_Request* request) {           \
    return irecv({buffer, count, type, comm}, source, tag, request);                            \
  }
MPRESS_BOTH_COUNTS(MPRESS_IRECV)
