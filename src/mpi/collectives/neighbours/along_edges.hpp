// MPI's own neighbourhood calls, along the edges of the communicator's topology.
#pragma once

#include <memory>

#include "coll/blocks/long_pairs.hpp"
#include "coll/blocks/served.hpp"
#include "coll/collective_operation.hpp"
#include "mpi/collectives/operands.hpp"

namespace mpress::engine {

class Job;

/// Makes the operation of such a call; see make_operation(). `pairs`: of these alone.
std::unique_ptr<CollectiveOperation> along_edges(Job& job, const Collective& call,
                                                 const Operands& operands, Team& team,
                                                 const Served& served,
                                                 const LongPairs* pairs = nullptr);

}  // namespace mpress::engine
