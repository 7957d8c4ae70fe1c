// How calls of MPI's that move data begin.
#pragma once

#include "core/asked.hpp"
#include "mpi/job/blocking.hpp"
#include "mpi/job/job.hpp"

namespace mpress::preload {

/// The job, where mpress has a say in a call that sends. Where some callers of MPI pass mpress by,
/// which would take frames for data, only calls that ask for mpress are its own.
inline engine::Job* own(engine::Job* job) {
  return job && job->serves_asked_calls_alone && !engine::Asking::innermost() ? nullptr : job;
}

inline engine::Job* enter_call() { return own(engine::enter_call()); }
inline engine::Job* enter_blocking_call() { return own(engine::enter_blocking_call()); }

/// What a call asks for that also receives; see own().
inline std::optional<Spec> asked_spec(const engine::Job& job) {
  if (job.serves_asked_calls_alone && !engine::Asking::innermost()) {
    return Spec{.codec = Codec::none};
  }
  return engine::asked_spec();
}

}  // namespace mpress::preload
