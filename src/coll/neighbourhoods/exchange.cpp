#include "coll/neighbourhoods/exchange.hpp"

#include "coll/blocks/copy_block.hpp"
#include "coll/team.hpp"
#include "message/messaging.hpp"

namespace mpress::engine {

Spec spec_of(const Config& config, const Exchange& exchange, const Team& team) {
  return exchange.coding ? exchange.coding->spec : spec_of(config, team);
}

Status copy_own(Messaging& messaging, const Exchange& exchange) {
  Status status;
  const auto copy = [&](int sent, int received) {
    const BlockData& from = exchange.to(sent);
    const BlockData& to = exchange.received[static_cast<std::size_t>(received)];
    if (from.bytes == 0 || to.bytes == 0) return;
    const Status copied = to.count > 0 ? copy_block(messaging, from, to) : Status::no_memory;
    if (status.is_ok()) status = copied;
  };
  if (exchange.own_edges) {
    for (const auto& [sent, received] : *exchange.own_edges) copy(sent, received);
    return status;
  }
  for (const int neighbour : exchange.plans->own()) copy(neighbour, neighbour);
  return status;
}

}  // namespace mpress::engine
