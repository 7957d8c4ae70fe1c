// The choice of a backend, once a process, at its first MPI call.
#pragma once

#include "front/api_calls.hpp"
#include "front/calls.hpp"

namespace mpress::front {

/// The backend's function for `call`. Where the program's MPI cannot be served, or does not have
/// the call, the process (or the job, if MPI runs) ends with a message that says why.
void* find_target(Call call);

/// The same for a function of mpress's own interface, which every MPI serves.
void* find_target(ApiCall call);

}  // namespace mpress::front
