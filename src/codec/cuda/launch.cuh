// Launches with attributes, and kernels that begin while the one before them still runs.
#pragma once

#include <cuda_runtime_api.h>

#include "codec/cuda/support.cuh"

namespace mpress::codec::cuda {

/// Lets the next kernel of the stream begin, if it may begin early, as soon as all thread blocks of
/// this one have called this and there is room for some of its own.
__device__ inline void let_next_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// In a kernel that may begin early: waits until the one before it is done and what that wrote is
/// visible. What kernels before that one wrote is, anyway.
__device__ inline void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// A launch with attributes.
class Launch {
 public:
  Launch(unsigned blocks, unsigned threads, cudaStream_t stream) {
    config_.gridDim = blocks;
    config_.blockDim = threads;
    config_.stream = stream;
    config_.attrs = attributes_;
  }

  /// Multiprocessors are set up for all the shared memory that they can have, however little this
  /// kernel takes: thread blocks of the next kernel may need it beside this one's.
  void prefer_shared_memory() {
#if CUDART_VERSION >= 12050
    add(cudaLaunchAttributePreferredSharedMemoryCarveout).sharedMemCarveout =
        cudaSharedmemCarveoutMaxShared;
#endif
  }

  /// The kernel may begin before the one in front of it has ended, on devices that can do that: it
  /// calls wait_for_previous().
  void begin_early() {
    if (compute_capability() < 90) return;
    add(cudaLaunchAttributeProgrammaticStreamSerialization)
        .programmaticStreamSerializationAllowed = 1;
  }

  /// cudaGetLastError() has what went wrong.
  template <class... Parameters, class... Arguments>
  void operator()(void (*kernel)(Parameters...), const Arguments&... arguments) {
    cudaLaunchKernelEx(&config_, kernel, arguments...);
  }

 private:
  cudaLaunchAttributeValue& add(cudaLaunchAttributeID id) {
    cudaLaunchAttribute& attribute = attributes_[config_.numAttrs++];
    attribute.id = id;
    return attribute.val;
  }

  cudaLaunchAttribute attributes_[2] = {};
  cudaLaunchConfig_t config_ = {};
};

}  // namespace mpress::codec::cuda
