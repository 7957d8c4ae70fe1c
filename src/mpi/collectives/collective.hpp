// Collective calls that mpress serves in place of MPI, in all three forms.
#pragma once

#include <memory>
#include <optional>

#include "mpi/collectives/kept_call.hpp"
#include "mpi/collectives/operands.hpp"
#include "mpi/collectives/pairwise_call.hpp"
#include "mpi/collectives/route.hpp"

namespace mpress::engine {

/// The place of a call behind what the program's default streams hold now, in its own thread. Null
/// where that is nothing, no buffer lies on a device, or the call names a stream.
std::shared_ptr<StreamOrder> order_behind_defaults(Job& job, const Operands& operands);

/// Waits until what the program's streams hold is done, if the call has a place behind them that
/// was not waited for. Returns an error code of MPI's, which has been raised.
int await_streams(Job& job, const Operands& operands);

/// Serves a blocking call that moves data. Empty where MPI has to, as all members of the
/// communicator know; then `pairs` is set where blocks of this rank's have begun that MPI must not
/// move. Returns an error code otherwise, which has been raised. `call` and `operands` outlive
/// `pairs`. A call with a stream may return before devices have done it; before MPI serves any of
/// one, await_streams() is called.
std::optional<int> serve_collective(Job& job, const Collective& call, const Operands& operands,
                                    std::unique_ptr<PairwiseCall>& pairs);

/// Begins a non-blocking call, of which candidate_or_leave() says that members decide later who
/// serves it: waits for no other rank. `request` completes when it is over. Returns an error code
/// of MPI's.
int begin_collective(Job& job, const Collective& call, const Candidate& candidate,
                     std::unique_ptr<KeptCall> kept, MPI_Request* request);

/// Of a non-blocking call that is decided at once, pair by pair: the long pairs of this rank, and
/// what their blocks need. Waits for no other rank.
struct PairsToBegin {
  LongPairs pairs;
  Served served;
};
/// Empty where MPI serves all of it, as far as this rank is concerned: on the program's
/// communicator, here and now.
std::optional<PairsToBegin> find_pairs(Job& job, const Collective& call, const Candidate& candidate,
                                       const Operands& operands);

/// Begins such a call: MPI's half and the blocks. `request` completes when both are over. Returns
/// MPI's error code, which has been raised.
int begin_pairwise(Job& job, const Collective& call, const Candidate& candidate, PairsToBegin found,
                   std::unique_ptr<KeptCall> kept, MPI_Request* request);

/// Makes a persistent call, for which it may wait; `request` is inactive. Empty where MPI has to
/// serve it, as far as this rank is concerned, with the program's own arguments. Returns an error
/// code otherwise, which has been raised.
std::optional<int> make_collective(Job& job, const Collective& call, const Candidate& candidate,
                                   std::unique_ptr<KeptCall> kept, MPI_Request* request);

}  // namespace mpress::engine
