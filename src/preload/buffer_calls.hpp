// Collective calls and others with buffers, as mpress shows them to the program.
#pragma once

#include "mpi/calls/buffer_calls.hpp"

namespace mpress::preload {

extern const mpi::BufferCalls staged_calls;

}  // namespace mpress::preload
