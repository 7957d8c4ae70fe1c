// The operation of each algorithm (coll/algorithm.hpp).
#pragma once

#include <cstddef>
#include <memory>

#include "coll/algorithm.hpp"
#include "mpi/collectives/offered_call.hpp"
#include "mpi/collectives/route.hpp"

namespace mpress::engine {

/// A call in this member, of which an operation is made. All outlives that.
struct CallHere {
  Job& job;
  const Collective& call;
  const Operands& operands;
  Team& team;
};

struct Maker {
  /// Of an algorithm that members offer each other. All but `agreed` outlives it.
  std::unique_ptr<OfferedCall> (*offer)(const CallHere& here, const AgreedCall& agreed) = nullptr;
  /// Of the others, but for MPI's own call; see make_operation().
  std::unique_ptr<CollectiveOperation> (*make)(const CallHere& here,
                                               const Served& served) = nullptr;
  /// Are these kernels that wait for each other's? A team has one such call at a time.
  bool has_kernels = false;
};

const Maker& maker(AlgorithmId id);

}  // namespace mpress::engine
