// Before a call in which MPI may wait for other ranks.
#pragma once

#include "engine/job.hpp"

namespace mpress::engine {

/// What is under way gets on while MPI blocks: by MPI's own progress hook; where there is none, it
/// is driven home first as far as it needs this process. Costs a load where nothing is under way.
void before_blocking(Job& job);

/// enter_call(), and that.
inline Job* enter_blocking_call() {
  Job* job = enter_call();
  if (job) before_blocking(*job);
  return job;
}

}  // namespace mpress::engine
