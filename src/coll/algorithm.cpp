#include "coll/algorithm.hpp"

#include <array>

namespace mpress::engine {

std::span<const Algorithm> algorithms() {
  static const std::array table{symmetric_move,
                                symmetric_broadcast,
                                symmetric_reduction,
                                linked_reduction,
                                reduction_by_blocks,
                                neighbours,
                                blocks,
                                pairs,
                                by_mpi};
  static_assert(table.size() == static_cast<std::size_t>(AlgorithmId::count_));
  return table;
}

AlgorithmId first_that_applies(const AgreedCall& call, AlgorithmId first) {
  while (algorithm(first).why_not(call)) first = next(first);
  return first;
}

}  // namespace mpress::engine
