#include "engine/coll/makers.hpp"

#include <iterator>

#include "engine/coll/blocks/served_call.hpp"
#include "engine/coll/joint/joint_broadcast.hpp"
#include "engine/coll/joint/joint_movement.hpp"
#include "engine/coll/joint/joint_reduction.hpp"
#include "engine/coll/neighbours/edges.hpp"
#include "engine/coll/neighbours/neighbour_call.hpp"
#include "engine/coll/reduce/linked_reduction.hpp"
#include "engine/coll/reduce/reduced_call.hpp"
#include "mpi/job/job.hpp"

namespace mpress::engine {
namespace {

template <typename Call>
std::unique_ptr<OfferedCall> offer(const CallHere& here, const AgreedCall& agreed) {
  return std::make_unique<Call>(here.job, here.call, here.operands, agreed, here.context);
}

template <typename Call>
std::unique_ptr<CollectiveOperation> make(const CallHere& here, mpi::CommInfo& comm,
                                          const Served& served) {
  return std::make_unique<Call>(here.job, here.call, here.operands, comm, here.context, served);
}

std::unique_ptr<CollectiveOperation> make_neighbours(const CallHere& here, mpi::CommInfo& comm,
                                                     const Served& served) {
  return std::make_unique<NeighbourCall>(
      here.job, here.call, exchange_along_edges(here.call, here.operands, here.context, nullptr),
      comm, here.context, served);
}

constexpr Maker makers[] = {
    {offer<JointMovement>, nullptr, true},   // symmetric_move
    {offer<JointBroadcast>, nullptr, true},  // symmetric_broadcast
    {offer<JointReduction>, nullptr, true},  // symmetric_reduction
    {offer<LinkedReduction>, nullptr},       // linked_reduction
    {nullptr, make<ReducedCall>},            // reduction_by_blocks
    {nullptr, make_neighbours},              // neighbours
    {nullptr, make<ServedCall>},             // blocks
    {nullptr, nullptr},                      // pairs: see make_pairs_operation()
    {nullptr, nullptr},                      // mpi
};
static_assert(std::size(makers) == static_cast<std::size_t>(AlgorithmId::count_));

}  // namespace

const Maker& maker(AlgorithmId id) { return makers[static_cast<std::size_t>(id)]; }

}  // namespace mpress::engine
