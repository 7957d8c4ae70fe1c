// An exchange of a neighbourhood, as one process makes it: what goes to each neighbour, and comes
// from it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "mpi/collectives/blocks/blocks.hpp"
#include "mpi/collectives/neighbours/plans.hpp"
#include "mpi/collectives/operands.hpp"
#include "mpi/objects/type_info.hpp"

namespace mpress::engine {

struct Coding;

/// The buffers of a call. Neighbours that do not exist have parts without bytes.
struct Exchange {
  Pattern pattern = Pattern::alltoall;
  Operands operands;           ///< what the call asks for, and its communicator; no buffer
  std::vector<Part> sent;      ///< to each neighbour; of an all-gather one, to all
  std::vector<Part> received;  ///< from each
  /// Bytes of what is `sent`, by any process; empty: no process knows all.
  std::vector<std::size_t> sizes;

  /// The part that goes to a neighbour.
  const Part& to(int neighbour) const {
    return sent[pattern == Pattern::allgather ? 0 : static_cast<std::size_t>(neighbour)];
  }
  /// The part of a schedule's block that this process sends, where blocks are not packed.
  const Part& outgoing(schedule::Block block) const {
    return to(static_cast<int>(block % places()));
  }
  /// Where such a block belongs; of an all-gather first, as it may belong to several places.
  const Part& incoming(const Way& way, schedule::Block block) const {
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
    Part result;
    MPI_Datatype type;  ///< the result's, as the program's operator gets it
    MPI_Op op;
  };
  std::optional<Sum> sum;

  /// How blocks are encoded, where the call's own operands do not say it.
  const Coding* coding = nullptr;
  /// Payloads are kept as they come, for NeighbourCall::summands(), and not decoded.
  bool keeps_payloads = false;

  /// The program may free its types while the call is under way.
  void keep_types();

 private:
  std::vector<std::unique_ptr<mpi::KeptType>> kept_;
};

/// Copies what the process has for itself. Returns an error code of MPI's, and raises nothing.
int copy_own(Job& job, const Exchange& exchange);

/// Before the start of a call with memory of devices: its place behind what their default streams
/// hold. Null where that is nothing.
std::shared_ptr<StreamOrder> order_behind_defaults(Job& job, const Exchange& exchange);

}  // namespace mpress::engine
