#include "coll/algorithms/conditions.hpp"
#include "coll/pieces.hpp"
#include "coll/symmetric/joint_movement.hpp"
#include "gpu/joint_move.hpp"

namespace mpress::engine {
namespace {

/// Where counts are a member's own, each member tells the length of its longest block in its offer,
/// and all find whether all are short.
WhyNot why_not(const AgreedCall& call) {
  if (call.call.reduces) return other_kind;
  if (const WhyNot why = why_no_kernels(call)) return why;
  if (const WhyNot why = why_no_offer(call, gpu::joint_move::most_members)) return why;
  const bool fits = call.call.has_own_counts ||
                    policy::may_move_jointly(reach_of(call.team), call.longest, call.team.ranks);
  return fits ? nullptr : "its blocks are too long";
}

}  // namespace

const Algorithm symmetric_move{.name = "symmetric move",
                               .why_not = why_not,
                               .offer = offer<JointMovement>,
                               .has_kernels = true};

}  // namespace mpress::engine
