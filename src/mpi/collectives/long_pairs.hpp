// The long pairs of a call, by its arguments.
#pragma once

#include "coll/blocks/long_pairs.hpp"
#include "mpi/collectives/operands.hpp"

namespace mpress::engine {

class Job;

/// Looks at each count once, and asks no other rank. `team` is ready. Without any long pair
/// nothing is allocated.
LongPairs find_long_pairs(const Job& job, const Team& team, const Operands& operands);

}  // namespace mpress::engine
