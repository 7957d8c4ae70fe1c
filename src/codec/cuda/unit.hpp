// Translation units with kernels, so that these can be loaded before they are needed: CUDA loads a
// kernel when it is launched first, and waits for whatever runs on the device to do so.
#pragma once

namespace mpress::codec::cuda {

/// One for each translation unit, for as long as the process lives.
struct CudaUnit {
  explicit CudaUnit(const void* some_kernel) : kernel(some_kernel), next(first) { first = this; }

  const void* const kernel;  ///< one of the unit's, for cudaGetFuncBySymbol()
  const CudaUnit* const next;
  static inline constinit const CudaUnit* first = nullptr;
};

}  // namespace mpress::codec::cuda
