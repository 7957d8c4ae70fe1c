// MPI's own neighbourhood calls: each edge of the communicator's topology is a pair of processes
// that both know its bytes.
#pragma once

#include <memory>

#include "coll/blocks/block_list.hpp"
#include "coll/blocks/long_pairs.hpp"
#include "coll/call.hpp"
#include "coll/neighbourhoods/exchange.hpp"
#include "coll/team.hpp"
#include "schedule/neighbourhoods/topology.hpp"

namespace mpress::engine {

/// Makes the exchange of a process along its edges, in one round: those of `pairs`, or all edges
/// where that is null. Of an all-gather each block goes once to each process. `sent`, `received`:
/// by neighbour; of an all-gather one block is sent.
std::unique_ptr<Exchange> exchange_along_edges(const Collective& call, const Team& team,
                                               const schedule::Topology& topology,
                                               const BlockList& sent, const BlockList& received,
                                               const LongPairs* pairs = nullptr);

}  // namespace mpress::engine
