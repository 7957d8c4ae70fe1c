// A report that any device can write to and the host waits for.
#pragma once

#include <cuda_runtime_api.h>

#include <new>

#include "codec/report.hpp"
#include "memory/device.hpp"

namespace mpress::gpu {

class PinnedReport {
 public:
  PinnedReport() : at_(new(slot_.data()) Report) {}

  Report* get() const { return at_; }

  /// Waits until the device has reported, and returns the report. Throws memory::CudaError where
  /// the stream, on which the report is expected, is done or failed without it.
  Report wait(cudaStream_t stream) const;

 private:
  memory::PinnedSlot slot_;
  Report* at_;
};

}  // namespace mpress::gpu
