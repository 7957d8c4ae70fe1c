// Making the operation of a collective call that mpress serves, and waiting for it.
#pragma once

#include <memory>

#include "coll/blocks/served.hpp"
#include "coll/collective_operation.hpp"
#include "mpi/collectives/blocks/long_pairs.hpp"
#include "mpi/collectives/operands.hpp"
#include "mpi/collectives/route.hpp"
#include "trace/record.hpp"

namespace mpress::engine {

/// What encodes a call's blocks: the innermost of what was asked.
Spec spec_of(const Job& job, const Operands& operands, const Team& team);

/// Tells a call's outcome, where that was asked for.
void tell_outcome(const std::optional<Asked>& asked, const CollectiveOperation& operation);

/// `served`: as Routing says. A persistent call has its tag for its lifetime; others take it while
/// they are under way, and wait for it. All but `served` outlives it.
std::unique_ptr<CollectiveOperation> make_operation(Job& job, const Collective& call,
                                                    const Operands& operands, Team& team,
                                                    const Served& served);

/// Makes the operation of a call's long pairs alone, beside MPI's call; `pairs` outlives it, too.
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
