// A call that mpress serves, as all members know it alike.
#pragma once

#include <cstdint>

#include "coll/algorithm.hpp"
#include "schedule/algorithms.hpp"

namespace mpress::engine {

/// A decision that is the same on all members.
struct Served {
  AlgorithmId algorithm = AlgorithmId::by_mpi;
  std::uint32_t tag = 0;    ///< of the blocks; the caller takes it (Team::order())
  schedule::Method method;  ///< by which they travel; of a reduction: results
  bool is_blocking = false;
  /// Set: it goes as blocks because a member has decided to encode its contribution. Those who
  /// encode do not ask again whether that pays.
  bool encodes = false;
};

}  // namespace mpress::engine
