// A reduction of elements as they are by kernels of all members: which parts they combine, and how
// these travel.
#pragma once

#include <cstdint>
#include <vector>

#include "coll/call.hpp"

namespace mpress::engine {

struct SymmetricParts {
  explicit SymmetricParts(const AgreedCall& call);

  /// Does each member combine a part, and do all gather these? Else in one shot.
  bool gathers;
  std::vector<std::uint64_t> begins;  ///< of parts, in elements
  bool in_lines;                      ///< as LL packets (gpu/lines.hpp)
  std::vector<std::int64_t> rows;     ///< of parts that go row by row; empty: it goes as a whole
};

}  // namespace mpress::engine
