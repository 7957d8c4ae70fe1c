// Elements as pipelines see them: no handle of MPI's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/element.hpp"
#include "gpu/gpu.hpp"

namespace mpress::engine {

/// Elements of one type, without gaps, in memory of one device or of the host.
struct Region {
  ElementType type;
  const std::byte* data;
  std::uint64_t count;
  int device = gpu::host;

  std::uint64_t bytes() const { return count * element_size(type); }
};

}  // namespace mpress::engine
