// MPI_Recv and MPI_Irecv.

#include "core/asked.hpp"
#include "mpi/calls/counted.hpp"
#include "mpi/job/job.hpp"
#include "mpi/messages/receive_calls.hpp"
#include "preload/export.hpp"

using namespace mpress;

namespace {

int irecv(const engine::ReceiveArguments& given, int source, int tag, MPI_Request* request) {
  engine::Job* job = engine::enter_call();
  if (!job || source == MPI_PROC_NULL) {
    return mpi::counted::Irecv(given.buffer, given.count, given.type, source, tag, given.comm,
                               request);
  }
  return engine::receive_later(*job, trace::Op::irecv, given, {source, tag}, request);
}

}  // namespace

#define MPRESS_RECV(suffix, Count, ...)                                                        \
  MPRESS_EXPORT int MPI_Recv##suffix(void* buffer, Count count, MPI_Datatype type, int source, \
                                     int tag, MPI_Comm comm, MPI_Status* status) {             \
    engine::Job* job = engine::enter_call();                                                   \
    return job ? engine::receive(*job, {buffer, count, type, comm, engine::asked_outcome()},   \
                                 {source, tag}, status)                                        \
               : mpi::counted::Recv(buffer, count, type, source, tag, comm, status);           \
  }
MPRESS_BOTH_COUNTS(MPRESS_RECV)

#define MPRESS_IRECV(suffix, Count, ...)                                                        \
  MPRESS_EXPORT int MPI_Irecv##suffix(void* buffer, Count count, MPI_Datatype type, int source, \
                                      int tag, MPI_Comm comm, MPI_Request* request) {           \
    return irecv({buffer, count, type, comm, engine::asked_outcome()}, source, tag, request);   \
  }
MPRESS_BOTH_COUNTS(MPRESS_IRECV)
