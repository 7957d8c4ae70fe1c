// Whether this thread is where the messages below mpress must not be let proceed: within the
// progress engine of MPI, or in a call that keeps to the same rules (mpi/progress_hook.hpp).
#pragma once

namespace mpress::engine {

inline constinit thread_local bool keeps_hook_rules = false;

}  // namespace mpress::engine
