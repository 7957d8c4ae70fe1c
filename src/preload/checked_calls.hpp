// Calls that take memory of the host alone, as mpress shows them to the program.
#pragma once

#include "mpi/calls/checked_calls.hpp"

namespace mpress::preload {

extern const mpi::CheckedCalls host_only_calls;

}  // namespace mpress::preload
