// An exchange of a neighbourhood, as one process makes it: what goes to each neighbour, and comes
// from it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "codec/combine.hpp"
#include "coll/blocks/block_map.hpp"
#include "coll/neighbourhoods/fold.hpp"
#include "coll/neighbourhoods/plans.hpp"
#include "message/message.hpp"

namespace mpress::engine {

class Team;

/// The buffers of a call. Neighbours that do not exist have blocks without bytes.
struct Exchange {
  Pattern pattern = Pattern::alltoall;
  std::vector<BlockData> sent;      ///< to each neighbour; of an all-gather one, to all
  std::vector<BlockData> received;  ///< from each
  /// Bytes of what is `sent`, by any process; empty: no process knows all.
  std::vector<std::size_t> sizes;

  /// The block that goes to a neighbour.
  const BlockData& to(int neighbour) const {
    return sent[pattern == Pattern::allgather ? 0 : static_cast<std::size_t>(neighbour)];
  }
  /// A schedule's block that this process sends, where blocks are not packed.
  const BlockData& outgoing(schedule::Block block) const {
    return to(static_cast<int>(block % places()));
  }
  /// Where such a block belongs; of an all-gather first, as it may belong to several places.
  const BlockData& incoming(const Way& way, schedule::Block block) const {
    const auto slot = pattern == Pattern::alltoall
                          ? static_cast<int>(block % places())
                          : way.passages.slots(way.passages.entry_of(block)).front();
    return received[static_cast<std::size_t>(slot)];
  }

  /// By which ways it may travel; null: along `edges`.
  std::shared_ptr<const NeighbourPlans> plans;
  std::shared_ptr<const Way> edges;
  /// Edges from the process to itself, by places in both lists. Lives as long as the communicator.
  const std::vector<std::pair<int, int>>* own_edges = nullptr;
  /// By so many are the blocks of an origin numbered.
  std::size_t places() const { return std::max(sent.size(), received.size()); }

  /// All of it begins with the call, as nothing of mpress's gets on while MPI blocks: nothing is
  /// passed on.
  bool is_direct = false;

  /// Of a reduction: what comes is combined to one vector, and `received` is not the program's.
  struct Sum {
    BlockData result;
    std::shared_ptr<Fold> fold;         ///< of vectors like the result, without gaps
    std::optional<codec::Combine> how;  ///< where it is one that mpress knows
    /// Of vectors of numbers, which `how` combines one by one; empty: of anything else.
    std::optional<ElementType> element;
  };
  std::optional<Sum> sum;

  /// How blocks are encoded, where the call says it itself; else as the communicator has it.
  std::optional<Coding> coding = {};
  /// Payloads are kept as they come, for NeighbourCall::summands(), and not decoded.
  bool keeps_payloads = false;
};

/// The codec of an exchange's blocks: that of the call, else of its team.
Spec spec_of(const Config& config, const Exchange& exchange, const Team& team);

/// Copies what the process has for itself. Raises nothing.
Status copy_own(Messaging& messaging, const Exchange& exchange);

}  // namespace mpress::engine
