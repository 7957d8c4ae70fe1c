// Collective calls whose blocks each go from one rank to one other: all-to-all, gather, scatter.
// Such a block is a message between the two, on the communicator's private one: encoded once by its
// origin, where that pays, and decoded once.
#pragma once

#include <optional>

#include "engine/coll/operands.hpp"
#include "engine/coll/route.hpp"

namespace mpress::engine {

/// Serves a blocking call. Empty where MPI has to, as all members of the communicator know. Returns
/// an error code otherwise, which has been raised.
std::optional<int> serve_directly(Job& job, const Collective& call, const Operands& operands);

}  // namespace mpress::engine
