#include "engine/blocking.hpp"

#include "mpi/progress_hook.hpp"

namespace mpress::engine {
namespace {

/// From within MPI; a little at a time, since other threads may wait for it to return.
bool poll() {
  Job* job = active_job();
  if (!job) return false;
  job->progress.advance(Progress::few);
  return !job->progress.idle();
}

}  // namespace

void before_blocking(Job& job) {
  if (job.progress.idle()) return;
  if (!mpi::add_progress_hook(poll)) job.progress.flush();
}

}  // namespace mpress::engine
