// Making the operation of a collective call that mpress serves, and waiting for it.
#pragma once

#include <memory>

#include "coll/blocks/long_pairs.hpp"
#include "coll/blocks/served.hpp"
#include "coll/call_here.hpp"
#include "coll/collective_operation.hpp"
#include "mpi/collectives/operands.hpp"
#include "mpi/collectives/route.hpp"
#include "trace/record.hpp"

namespace mpress::engine {

/// The codec of a call's blocks: that of the call, else of its team.
Spec spec_of(const Job& job, const Operands& operands, const Team& team);

/// Tells a call's outcome, where that was asked for.
void tell_outcome(const std::optional<Asked>& asked, const CollectiveOperation& operation);

/// A call by its arguments. Its blocks are looked up in `operands`, which outlives it.
CallHere call_here(Job& job, const Operands& operands, Team& team, AgreedCall agreed);

/// Makes the operation of a call's long pairs alone, beside MPI's call; Routing makes those of
/// others. All but `served` outlives it.
std::unique_ptr<CollectiveOperation> make_pairs_operation(Job& job, const Collective& call,
                                                          const Operands& operands, Team& team,
                                                          const Served& served,
                                                          const LongPairs& pairs);

// Of blocking calls:

/// Waits for one that has started.
void wait_for(Job& job, CollectiveOperation& operation);

/// Counts one that is over, which began at `begin_ns`, and what it found out.
void count_blocking(Job& job, trace::Called called, std::uint64_t begin_ns);

}  // namespace mpress::engine
