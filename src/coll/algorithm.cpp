#include "coll/algorithm.hpp"

#include <array>

namespace mpress::engine {

std::span<const Algorithm> algorithms() {
#define MPRESS_NAME(name) name,
  static const std::array table{MPRESS_ALGORITHMS(MPRESS_NAME)};
#undef MPRESS_NAME
  return table;
}

AlgorithmId first_that_applies(const AgreedCall& call, AlgorithmId first) {
  while (algorithm(first).why_not(call)) first = next(first);
  return first;
}

}  // namespace mpress::engine
