// MPI's own neighbourhood calls: each edge of the communicator's topology is a pair of processes
// that both know its bytes.
#pragma once

#include <memory>

#include "coll/team.hpp"
#include "mpi/collectives/blocks/long_pairs.hpp"
#include "mpi/collectives/neighbours/exchange.hpp"
#include "mpi/collectives/operands.hpp"
#include "mpi/collectives/route.hpp"

namespace mpress::engine {

/// Makes the exchange of a process along its edges, in one round: those of `pairs`, or all edges
/// where that is null. Of an all-gather each block goes once to each process. `operands` outlives
/// it where its types do.
std::unique_ptr<const Exchange> exchange_along_edges(const Collective& call,
                                                     const Operands& operands, const Team& team,
                                                     const LongPairs* pairs);

}  // namespace mpress::engine
