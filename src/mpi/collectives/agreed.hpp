// A call and its team as all members know them (coll/call.hpp), from this member's arguments.
#pragma once

#include "coll/call.hpp"
#include "mpi/collectives/operands.hpp"

namespace mpress::engine {

class Team;
class Job;

/// Could buffers on devices make a difference to calls of such a communicator? Once its team is
/// ready.
bool may_see_devices(const Job& job, const Team& team);

/// The facts of a team that is ready; for the call whose turn it is.
TeamFacts facts_of(const Job& job, Team& team);

/// The part of it that arguments tell.
AgreedCall agreed_call(const Collective& call, const Operands& operands, const TeamFacts& team);

}  // namespace mpress::engine
