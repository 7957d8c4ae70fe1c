// A blocking collective call of which mpress serves the long pairs, and MPI the rest.
#pragma once

#include <cstdint>
#include <memory>

#include "mpi/collectives/long_pairs.hpp"
#include "mpi/collectives/operands.hpp"
#include "mpi/collectives/operations.hpp"
#include "mpi/collectives/route.hpp"
#include "mpi/objects/comm_info.hpp"

namespace mpress::engine {

/// Every member makes both halves, as none knows whether others have long pairs: it begins with its
/// blocks, makes MPI's own call without them, and waits for the blocks. No rank needs a block to
/// get through MPI's call, nor to come to it.
class PairwiseCall {
 public:
  /// Begins the blocks: waits for no rank. `job`, `call`, `operands` and `team` outlive it.
  PairwiseCall(Job& job, const Collective& call, const Operands& operands,
               std::shared_ptr<mpi::CommInfo> comm, Team& team, const Served& served,
               LongPairs pairs);

  /// Those that MPI's call must not move.
  const LongPairs& pairs() const { return pairs_; }

  /// After MPI's call, which gave `code`: waits for the blocks. Returns an error code, which has
  /// been raised.
  int end(int code);

 private:
  Job& job_;
  const Collective& call_;
  const Operands& operands_;
  const std::shared_ptr<mpi::CommInfo> comm_;
  const LongPairs pairs_;
  const std::uint64_t begin_ns_;
  const std::unique_ptr<CollectiveOperation> served_;
  bool is_over_ = false;  ///< the blocks
};

}  // namespace mpress::engine
