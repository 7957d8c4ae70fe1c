#include "mpi/collectives/makers.hpp"

#include <array>
#include <cstddef>

#include "coll/reduce/reduced_call.hpp"
#include "mpi/collectives/agreed.hpp"
#include "mpi/collectives/blocks/served_call.hpp"
#include "mpi/collectives/joint/joint_broadcast.hpp"
#include "mpi/collectives/joint/joint_movement.hpp"
#include "mpi/collectives/joint/joint_reduction.hpp"
#include "mpi/collectives/neighbours/along_edges.hpp"
#include "mpi/collectives/operations.hpp"
#include "mpi/collectives/reduce/linked_reduction.hpp"
#include "mpi/collectives/reduce/reduction.hpp"
#include "mpi/job/job.hpp"

namespace mpress::engine {
namespace {

template <typename Call>
std::unique_ptr<OfferedCall> offer(const CallHere& here, const AgreedCall& agreed) {
  return std::make_unique<Call>(here.job, here.call, here.operands, agreed, here.team);
}

template <typename Call>
std::unique_ptr<CollectiveOperation> make(const CallHere& here, const Served& served) {
  return std::make_unique<Call>(here.job, here.call, here.operands, here.team, served);
}

std::unique_ptr<CollectiveOperation> make_reduction(const CallHere& here, const Served& served) {
  const auto& [job, call, operands, team] = here;
  return std::make_unique<ReducedCall>(
      job, team,
      ReductionTask::Of{call, *reduction_of(operands), operands.root,
                        const_cast<void*>(operands.receive.buffer), spec_of(job, operands, team),
                        agreed_call(call, operands, facts_of(job, team)), served});
}

std::unique_ptr<CollectiveOperation> make_neighbours(const CallHere& here, const Served& served) {
  return along_edges(here.job, here.call, here.operands, here.team, served);
}

using Makers = std::array<Maker, static_cast<std::size_t>(AlgorithmId::count_)>;

/// `pairs` and `by_mpi` have none: see make_pairs_operation().
constexpr Makers makers = [] {
  Makers all{};
  const auto of = [&](AlgorithmId id) -> Maker& { return all[static_cast<std::size_t>(id)]; };
  of(AlgorithmId::symmetric_move) = {.offer = offer<JointMovement>, .has_kernels = true};
  of(AlgorithmId::symmetric_broadcast) = {.offer = offer<JointBroadcast>, .has_kernels = true};
  of(AlgorithmId::symmetric_reduction) = {.offer = offer<JointReduction>, .has_kernels = true};
  of(AlgorithmId::linked_reduction) = {.offer = offer<LinkedReduction>};
  of(AlgorithmId::reduction_by_blocks) = {.make = make_reduction};
  of(AlgorithmId::neighbours) = {.make = make_neighbours};
  of(AlgorithmId::blocks) = {.make = make<ServedCall>};
  return all;
}();

}  // namespace

const Maker& maker(AlgorithmId id) { return makers[static_cast<std::size_t>(id)]; }

}  // namespace mpress::engine
