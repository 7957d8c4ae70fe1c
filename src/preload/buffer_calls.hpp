// Collective calls and others with buffers, as mpress shows them to the program.
#pragma once

#include "link/buffer_calls.hpp"

namespace mpress::preload {

extern const link::BufferCalls staged_calls;

}  // namespace mpress::preload
