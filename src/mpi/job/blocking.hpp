// Before a call in which MPI may wait for other ranks.
#pragma once

#include "mpi/job/job.hpp"

namespace mpress::engine {

/// Finishes the part of operations that needs this process and waits for no other rank: also before
/// a call that completes requests, as MPI may wait for one that mpress has nothing to do with. The
/// rest proceeds while MPI blocks, by MPI's own progress hook, if it keeps to the rules of that;
/// nothing else does where there is no progress thread.
void flush_operations(Job& job);

/// The same; costs a load where nothing is under way.
inline void before_blocking(Job& job) {
  if (!job.progress.idle()) flush_operations(job);
}

/// enter_call(), and that.
inline Job* enter_blocking_call() {
  Job* job = enter_call();
  if (job) before_blocking(*job);
  return job;
}

/// After such a call: MPI has moved meanwhile what is under way, so this process was not away from
/// messages that are timed. Learns the times that receivers have reported. Returns `code`.
inline int after_blocking(Job* job, int code) {
  if (job) {
    job->links.channel.outbox.excuse();
    job->timings.collect();
  }
  return code;
}

}  // namespace mpress::engine
