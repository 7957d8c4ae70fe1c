// Ranges of calls for NVIDIA's profilers (NVTX), in the domain "mpress". Where no profiler is
// attached to the process, a range costs one look at a pointer.
#pragma once

#include <nvtx3/nvToolsExt.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/element.hpp"
#include "codec/spec.hpp"

namespace mpress::codec::cuda {

/// Spans the scope that it lives in, a call over a batch of segments. Its name has the call, the
/// spec, the element type and the number of segments where that is not 1; its payload is the size
/// of all elements in bytes.
class NvtxRange {
 public:
  template <class Segment>
  NvtxRange(const char* call, const Spec& spec, ElementType type,
            std::span<const Segment> segments) {
    if (domain() == nullptr) return;
    std::uint64_t elements = 0;
    for (const Segment& s : segments) elements += s.count;
    push(call, spec, type, segments.size(), elements * element_size(type));
  }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
  ~NvtxRange() {
    if (domain() != nullptr) nvtxDomainRangePop(domain());
  }

 private:
  /// Null where no profiler is attached; that does not change while a process runs.
  static nvtxDomainHandle_t domain() {
    static const nvtxDomainHandle_t mpress = nvtxDomainCreateA("mpress");
    return mpress;
  }
  static void push(const char* call, const Spec& spec, ElementType type, std::size_t segments,
                   std::uint64_t bytes);
};

}  // namespace mpress::codec::cuda
