#include "engine/coll/reduce/reduction_task.hpp"

#include "coll/pieces.hpp"
#include "engine/coll/agreed.hpp"
#include "engine/coll/collective_operation.hpp"
#include "engine/coll/joint/joint_call.hpp"
#include "mpi/job/job.hpp"
#include "mpi/objects/type_info.hpp"

namespace mpress::engine {
namespace {

/// Sums of szp that one kernel a member makes overlap; as blocks they hardly do. All members find
/// the same.
bool is_likely_joint(const ReductionTask& task) {
  return task.served.is_blocking && task.spec.codec == Codec::szp &&
         task.reduction.how == codec::Combine::sum && task.team.hosts().count() == 1 &&
         task.has_joint_memory() && task.team.facts().is_true_for_any(Fact::may_see_gpus) &&
         may_have_kernels(task.job.config);
}

}  // namespace

ReductionTask::ReductionTask(Job& job, const Collective& call, const Operands& operands, Team& team,
                             const Served& served)
    : job(job),
      call(call),
      operands(operands),
      team(team),
      served(served),
      reduction(*reduction_of(operands)),
      layout(mpi::type_info(reduction.mpi_type())),
      is_reproducible(team.hints().is_reproducible() && reduction.how != codec::Combine::prod),
      spec(spec_for(reduction, spec_of(job, operands, team), is_reproducible)),
      begins(pieces_of(agreed_call(call, operands, facts_of(job, team)), is_likely_joint(*this))) {
  for (std::size_t i = 1; i < begins.size(); ++i) counts.push_back(begins[i] - begins[i - 1]);
}

/// Not where sums of a host, which are rounded, could make a difference.
bool ReductionTask::is_by_host() const { return team.hosts().is_mixed() && !is_reproducible; }

trace::Called ReductionTask::called() const {
  const auto by = is_by_host() ? schedule::Algorithm::by_host : schedule::Algorithm::two_shot;
  return {call.op, static_cast<std::uint8_t>(by)};
}

bool ReductionTask::has_joint_memory() const {
  return team.modes().has_memory_of_all() && reduction.bytes() <= reach_of(team).most_in_quanta;
}

}  // namespace mpress::engine
