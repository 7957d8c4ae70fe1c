#include "coll/reduce/reduction_task.hpp"

#include "coll/pieces.hpp"
#include "core/plain_layout.hpp"

namespace mpress::engine {
namespace {

bool is_likely_joint(const ReductionTask& task) {
  return task.served.is_blocking && task.spec.codec == Codec::szp &&
         task.reduction.how == codec::Combine::sum && task.team.hosts().count() == 1 &&
         task.has_joint_memory() && task.team.facts().is_true_for_any(Fact::may_see_gpus) &&
         task.facts.may_have_kernels;
}

}  // namespace

ReductionTask::ReductionTask(Messaging& messaging, Team& team, const Of& of)
    : messaging(messaging),
      team(team),
      call(of.call),
      served(of.served),
      facts(of.agreed.team),
      reduction(of.reduction),
      root(of.root),
      results(static_cast<std::byte*>(of.results)),
      layout(plain_layout(reduction.type)),
      is_reproducible(team.hints().is_reproducible() && reduction.how != codec::Combine::prod),
      spec(spec_for(reduction, of.spec, is_reproducible)),
      begins(pieces_of(of.agreed, is_likely_joint(*this))) {
  for (std::size_t i = 1; i < begins.size(); ++i) counts.push_back(begins[i] - begins[i - 1]);
}

bool ReductionTask::is_by_host() const { return team.hosts().is_mixed() && !is_reproducible; }

trace::Called ReductionTask::called() const {
  const auto by = is_by_host() ? schedule::Algorithm::by_host : schedule::Algorithm::two_shot;
  return {call.op, static_cast<std::uint8_t>(by)};
}

bool ReductionTask::has_joint_memory() const {
  return team.modes().has_memory_of_all() && reduction.bytes() <= reach_of(facts).most_in_quanta;
}

}  // namespace mpress::engine
