// What all members know alike of a call that mpress serves.
#pragma once

#include <cstdint>

#include "coll/algorithm.hpp"
#include "schedule/algorithms.hpp"

namespace mpress::engine {

/// What those who serve a call have to know alike.
struct Served {
  AlgorithmId algorithm = AlgorithmId::by_mpi;
  std::uint32_t tag = 0;    ///< of the blocks; the caller takes it (Team::order())
  schedule::Method method;  ///< by which they travel; of a reduction: results
  bool is_blocking = false;
  /// Set: it goes as blocks because a member has decided to encode what it brings. Those who encode
  /// do not ask again whether that pays.
  bool encodes = false;
};

}  // namespace mpress::engine
