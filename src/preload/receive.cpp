// MPI_Recv and MPI_Irecv.

#include <shared_mutex>
#include <utility>

#include "engine/job.hpp"
#include "engine/p2p/exchange.hpp"
#include "engine/p2p/receive_request.hpp"
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
  std::shared_ptr<engine::ReceiveRequest> entry;
  bool watched = false;
  if (engine::Receive::may_need_watching(*job, given)) {
    entry = std::make_shared<engine::ReceiveRequest>(*job);
    watched = entry->receive.watch(*job, op, given);
    if (watched) entry->claim_buffer();
    if (job->pacer.active()) entry->receive.travels_when_posted();
  }
  std::shared_lock<std::shared_mutex> posting;
  if (job->threaded) posting = job->probed.posting();
  if (const auto probed = job->probed.take(given.comm, source, tag)) {
    if (!watched) {
      entry = std::make_shared<engine::ReceiveRequest>(*job);
      entry->receive.describe(*job, op, given);
    }
    const int code = probed->deliver_later(*job, *entry, request);
    if (entry->must_be_kept()) engine::file(*job, *request, std::move(entry));
    return code;
  }
  if (!watched) {
    return mpi::counted::Irecv(given.buffer, given.count, given.type, source, tag, given.comm,
                               request);
  }
  const engine::Receive& receive = entry->receive;
  const int code = mpi::counted::Irecv(receive.buffer(), receive.count(), receive.type(), source,
                                       tag, given.comm, request);
  if (code == MPI_SUCCESS) engine::file(*job, *request, std::move(entry));
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
