// Copies between layouts, run by run.
#pragma once

#include <cstdint>

#include "core/layout.hpp"

namespace mpress::engine {

/// `count` items of a layout, or without one so many bytes, in memory that the CPU reads.
struct ItemSpan {
  void* data;
  const Layout* layout;
  std::int64_t count;
};

/// Copies what lies at `from` to `to`, which has the same signature, where both are regular
/// (gpu/runs.hpp) or have no gaps: faces of arrays take a fraction of the time that MPIs take.
/// False, and nothing is copied, where one is neither.
bool copy_regular(const ItemSpan& from, const ItemSpan& to);

}  // namespace mpress::engine
