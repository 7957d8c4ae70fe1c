// Runs a schedule whose blocks are messages between two ranks, on a context's private communicator.
// So blocks have the protocols, links, codecs, statistics and faults of messages. What several
// ranks get is encoded once and passed on as it came: coll/shared_blocks.
#pragma once

#include "engine/coll/blocks.hpp"
#include "engine/coll/route.hpp"
#include "schedule/schedule.hpp"

namespace mpress::engine {

/// Round by round; waits, and returns an error code of MPI's, which is not raised. What cannot be
/// sent comes empty, so that nobody waits for ever, and is an error there, too: all of it, where
/// `code` tells of an error already. No message is left under way.
int run_schedule(Job& job, const Collective& call, const Context& context,
                 const schedule::Schedule& schedule, const BlockMap& blocks, int code);

}  // namespace mpress::engine
