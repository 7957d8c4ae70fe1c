// Algorithms whose data goes as messages of mpress's, and MPI's own.

#include <memory>
#include <utility>

#include "coll/algorithms/conditions.hpp"
#include "coll/blocks/served_call.hpp"
#include "coll/neighbourhoods/edges.hpp"
#include "coll/neighbourhoods/neighbour_call.hpp"
#include "coll/reduce/reduced_call.hpp"

namespace mpress::engine {
namespace {

using Operation = std::unique_ptr<CollectiveOperation>;

Operation make_reduction(const CallHere& here, const Served& served) {
  return std::make_unique<ReducedCall>(
      here.messaging, here.team,
      ReductionTask::Of{here.agreed.call, *here.reduction, here.agreed.root, here.results,
                        here.spec, here.agreed, served});
}

Operation make_blocks(const CallHere& here, const Served& served) {
  return std::make_unique<ServedCall>(here, served);
}

Operation make_neighbours(const CallHere& here, const Served& served) {
  const Collective& call = here.agreed.call;
  auto exchange =
      exchange_along_edges(call, here.team, *here.topology, here.sent, here.received, here.pairs);
  exchange->coding = here.coding;
  return std::make_unique<NeighbourCall>(here.messaging, call, std::move(exchange), here.team,
                                         served);
}

/// MPI's own call is made beside it, so no thread drives its messages.
Operation make_pairs(const CallHere& here, const Served& served) {
  if (!here.topology) return make_blocks(here, served);
  Served beside = served;
  beside.is_blocking = false;
  return make_neighbours(here, beside);
}

}  // namespace

const Algorithm reduction_by_blocks{.name = "reduction by blocks",
                                    .why_not = [](const AgreedCall& call) -> WhyNot {
                                      return call.call.reduces ? why_no_blocks(call) : other_kind;
                                    },
                                    .make = make_reduction};

const Algorithm neighbours{.name = "neighbours",
                           .why_not = [](const AgreedCall& call) -> WhyNot {
                             return call.has_topology ? why_no_blocks(call) : other_kind;
                           },
                           .make = make_neighbours};

const Algorithm blocks{
    .name = "blocks",
    .why_not = [](const AgreedCall& call) -> WhyNot { return why_no_blocks(call); },
    .make = make_blocks};

const Algorithm pairs{.name = "long pairs",
                      .why_not = [](const AgreedCall& call) -> WhyNot {
                        if (!call.call.has_own_counts) return other_kind;
                        return call.encodes_pairs ? nullptr : does_not_pay;
                      },
                      .make = make_pairs};

const Algorithm by_mpi{.name = "mpi",
                       .why_not = [](const AgreedCall&) -> WhyNot { return nullptr; }};

}  // namespace mpress::engine
