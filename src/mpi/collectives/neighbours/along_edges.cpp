#include "mpi/collectives/neighbours/along_edges.hpp"

#include <utility>

#include "coll/neighbourhoods/edges.hpp"
#include "coll/neighbourhoods/neighbour_call.hpp"
#include "mpi/collectives/blocks/blocks.hpp"
#include "mpi/job/job.hpp"

namespace mpress::engine {

std::unique_ptr<CollectiveOperation> along_edges(Job& job, const Collective& call,
                                                 const Operands& operands, Team& team,
                                                 const Served& served, const LongPairs* pairs) {
  auto exchange = exchange_along_edges(call, team, *operands.topology, sent_blocks(operands),
                                       received_blocks(operands), pairs);
  if (operands.asked && operands.asked->spec) {
    exchange->coding = Coding{.spec = *operands.asked->spec};
  }
  return std::make_unique<NeighbourCall>(job, call, std::move(exchange), team, served);
}

}  // namespace mpress::engine
