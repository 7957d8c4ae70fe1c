// Whether a rank encodes its contribution to a collective call, decided before anything travels.
//
// Only the rank itself knows what its links and its data are like, so members tell each other their
// answers (coll/route, coll/reduce/range_exchange), and all go by them.
#pragma once

#include <cstddef>

#include "codec/spec.hpp"
#include "coll/blocks/block_map.hpp"

namespace mpress::engine {

class Team;
struct Messaging;
struct Collective;

/// A rank's contribution to a call, as far as other members get it, and the spec to encode it with.
struct Contribution {
  BlockData data;
  Spec spec;
};

/// Would this rank encode it on its way to the member that is the hardest to reach?
/// `raw_by_kernels`: else kernels of all members bring it, in the place of messages. The answer
/// counts as one about a message: see Policy::judge().
bool would_encode(Messaging& messaging, const Collective& call, const Contribution& what,
                  const Team& team, bool raw_by_kernels);

/// Tells the policy that `raw_bytes` of data like this became `wire_bytes`.
void learn_ratio(Messaging& messaging, const Collective& call, const Contribution& what,
                 const Team& team, std::size_t raw_bytes, std::size_t wire_bytes);

}  // namespace mpress::engine
