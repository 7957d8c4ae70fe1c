// Elements as pipelines see them: no handle of MPI's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "codec/element.hpp"
#include "gpu/gpu.hpp"

namespace mpress::engine {

/// Elements of one type, without gaps, in memory of one device or of the host.
struct Region {
  ElementType type;
  const std::byte* data;
  std::uint64_t count;
  int device = gpu::host;
  /// Set: what the program's default streams held at the call. Work on the elements comes behind
  /// it.
  std::shared_ptr<const gpu::PriorWork> behind = nullptr;

  std::uint64_t bytes() const { return count * element_size(type); }
};

/// Can elements of such a type lie at an address, in memory of a device or of the host? Devices
/// load and store whole ones.
inline bool is_aligned(const void* address, int device, ElementType type) {
  return device == gpu::host || reinterpret_cast<std::uintptr_t>(address) % element_size(type) == 0;
}

}  // namespace mpress::engine
