#include "coll/algorithms/linked_reduction.hpp"

#include "coll/algorithms/conditions.hpp"
#include "coll/reduce/linked_reduction.hpp"
#include "gpu/codec_queue.hpp"

namespace mpress::engine {
namespace {

WhyNot why_not(const AgreedCall& call) {
  if (!call.call.reduces) return other_kind;
  if (const WhyNot why = why_no_kernels(call)) return why;
  if (const WhyNot why = why_no_blocks(call)) return why;
  if (!call.team.is_linked()) return "members' GPUs do not reach each other";
  if (!call.reduction) return not_combined;
  if (const WhyNot why = why_no_offer(call, gpu::CodecQueue::most_inputs)) return why;
  return linked_shots_of(call) == policy::Shots::none ? "too long" : nullptr;
}

}  // namespace

policy::Shots linked_shots_of(const AgreedCall& call) {
  const policy::Shots shots = policy::linked_shots(call.reduction->bytes(), call.team.ranks);
  if (shots == policy::Shots::none || call.call.family == Family::allreduce) return shots;
  return policy::Shots::one;
}

const Algorithm linked_reduction{
    .name = "linked reduction", .why_not = why_not, .offer = offer<LinkedReduction>};

}  // namespace mpress::engine
