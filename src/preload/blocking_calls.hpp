// Calls that may wait for other ranks, as mpress shows them to the program.
#pragma once

#include "mpi/calls/blocking_calls.hpp"

namespace mpress::preload {

extern const mpi::BlockingCalls watched_calls;

}  // namespace mpress::preload
