// A collective call that mpress serves, in place of MPI.
#pragma once

#include <optional>

#include "engine/coll/operands.hpp"
#include "engine/coll/route.hpp"

namespace mpress::engine {

/// Serves a blocking call that moves data. Empty where MPI has to, as all members of the
/// communicator know. Returns an error code otherwise, which has been raised.
std::optional<int> serve_collective(Job& job, const Collective& call, const Operands& operands);

}  // namespace mpress::engine
