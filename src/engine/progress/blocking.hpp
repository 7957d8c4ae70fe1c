// Before a call in which MPI may wait for other ranks.
#pragma once

#include "engine/job/job.hpp"

namespace mpress::engine {

/// Drives home what needs this process and waits for no other rank. What is left gets on while MPI
/// blocks, by MPI's own progress hook, if it keeps to the rules of that; nothing else does where
/// there is no progress thread. Costs a load where nothing is under way.
void before_blocking(Job& job);

/// The same before a call that completes requests, and lets all else proceed while it can.
inline void before_waiting(Job& job) {
  if (job.progress.may_run_in_hook()) before_blocking(job);
}

/// enter_call(), and that.
inline Job* enter_blocking_call() {
  Job* job = enter_call();
  if (job) before_blocking(*job);
  return job;
}

/// After such a call: MPI has moved meanwhile what is under way, so this process was not away from
/// messages that are timed. Takes what was told of them. Gives `code` back.
inline int after_blocking(Job* job, int code) {
  if (job) {
    job->mpi_link.outbox.excuse();
    job->timings.collect(*job);
  }
  return code;
}

}  // namespace mpress::engine
