#include "mpi/job/blocking.hpp"

#include "mpi/progress_hook.hpp"

namespace mpress::engine {
namespace {

/// From within MPI; a little at a time, since other threads may wait for it to return.
bool poll() {
  Job* job = active_job();
  return job && job->progress.advance_in_hook(Progress::few);
}

}  // namespace

void flush_operations(Job& job) {
  if (job.progress.is_threaded()) return;
  job.progress.flush();
  if (job.progress.may_run_in_hook()) mpi::add_progress_hook(poll);
}

}  // namespace mpress::engine
