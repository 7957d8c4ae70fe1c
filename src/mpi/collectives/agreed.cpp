#include "mpi/collectives/agreed.hpp"

#include "coll/team.hpp"
#include "mpi/collectives/reduction.hpp"
#include "mpi/collectives/route.hpp"
#include "mpi/job/job.hpp"

namespace mpress::engine {

bool may_see_devices(const Job& job, const Team& team) {
  return team.facts().is_true_for_any(Fact::may_see_gpus) &&
         (job.collectives.on_devices || team.hosts().count() == 1);
}

TeamFacts facts_of(const Job& job, Team& team) {
  return {.ranks = team.size(),
          .hosts = team.hosts().count(),
          .between_devices = team.modes().between_devices(),
          .has_shared_memory = team.modes().has_memory_of_all(),
          .may_see_devices = may_see_devices(job, team),
          .may_have_kernels = may_have_kernels(job.config),
          .most_offered = team.agreements().most_gathered()};
}

AgreedCall agreed_call(const Collective& call, const Operands& operands, const TeamFacts& team) {
  AgreedCall agreed{.call = call, .team = team, .root = operands.root};
  agreed.has_topology = operands.topology != nullptr;
  if (call.reduces) {
    if (const auto reduction = reduction_of(operands)) agreed.reduction = *reduction;
  }
  agreed.result_counts = operands.result_counts;
  return agreed;
}

}  // namespace mpress::engine
