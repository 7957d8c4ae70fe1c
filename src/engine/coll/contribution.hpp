// Whether a rank encodes its contribution to a collective call, decided before anything travels.
//
// Only the rank itself knows what its links and its data are like, so members tell each other their
// answers (coll/route, coll/reduce/reduced_call), and all go by them.
#pragma once

#include <cstddef>

#include "codec/spec.hpp"
#include "engine/coll/blocks/blocks.hpp"
#include "policy/policy.hpp"

namespace mpress::engine {

class Context;
class Job;
struct Collective;

/// Would this rank encode `part` by `spec` on its way to the member that is the hardest to reach?
/// `raw_by_kernels`: else kernels of all members bring it, in the place of messages. The answer
/// counts as one about a message: see Policy::judge().
bool would_encode(Job& job, const Collective& call, const Part& part, const Spec& spec,
                  const Context& context, bool raw_by_kernels);

/// Tells the policy that `raw_bytes` of data like `part` became `wire_bytes`. The part's types and
/// the communicator are still there.
void learn_ratio(Job& job, const Collective& call, const Part& part, const Spec& spec,
                 const Context& context, std::size_t raw_bytes, std::size_t wire_bytes);

}  // namespace mpress::engine
