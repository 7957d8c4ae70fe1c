// MPICH's extensions, MPIX_NAME. MPIX_Request_is_complete tells a program that a message is there,
// and MPIX_Stream_progress lets it come; a program may use nothing else, also in a hook of its own
// (MPIX_Async_start). On communicators of MPICH's streams and threads others may receive by calls
// that mpress does not see (MPIX_Recv_enqueue, MPIX_Stream_recv), so nothing is encoded there.

#include "mpi/calls/calls.hpp"
#include "mpi/job/blocking.hpp"
#include "mpi/job/job.hpp"
#include "mpi/objects/comm_info.hpp"
#include "mpi/requests/request_calls.hpp"
#include "preload/export.hpp"

using namespace mpress;

/// Programs that look whether MPI has these find them in the front, so they must work.
MPRESS_EXPORT int MPIX_Request_is_complete(MPI_Request request) {
  engine::Job* const job = engine::active_job();
  if (job && !job->requests.empty()) return engine::is_complete(*job, request);
  const mpi::Calls& mpi = mpi::calls();
  if (mpi.Request_is_complete) return mpi.Request_is_complete(request);
  int flag = 0;
  const int code = mpi.Request_get_status(request, &flag, MPI_STATUS_IGNORE);
  return code != MPI_SUCCESS || flag;
}

MPRESS_EXPORT int MPIX_Stream_progress(MpressStream stream) {
  const mpi::Calls& mpi = mpi::calls();
  int found = 0;
  const int code = mpi.Stream_progress
                       ? mpi.Stream_progress(stream)
                       : mpi.Iprobe(MPI_PROC_NULL, 0, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
  if (engine::Job* const job = engine::active_job()) job->progress.advance();
  return code;
}

namespace {

int without_frames(const MPI_Comm* created, int code) {
  if (code == MPI_SUCCESS && engine::active_job()) mpi::carry_no_frames(*created);
  return code;
}

}  // namespace

MPRESS_EXPORT int MPIX_Stream_comm_create(MPI_Comm comm, MpressStream stream, MPI_Comm* created) {
  engine::enter_blocking_call();
  return without_frames(created, mpi::calls().Stream_comm_create(comm, stream, created));
}

MPRESS_EXPORT int MPIX_Stream_comm_create_multiplex(MPI_Comm comm, int count,
                                                    MpressStream streams[], MPI_Comm* created) {
  engine::enter_blocking_call();
  return without_frames(created,
                        mpi::calls().Stream_comm_create_multiplex(comm, count, streams, created));
}

MPRESS_EXPORT int MPIX_Threadcomm_init(MPI_Comm comm, int threads, MPI_Comm* created) {
  engine::enter_blocking_call();
  return without_frames(created, mpi::calls().Threadcomm_init(comm, threads, created));
}
