// How a kernel tells by itself that all of it is done.
#pragma once

#include "gpu/cuda/tell.hpp"

namespace mpress::gpu {

/// Called by all threads of all blocks, at their end; `blocks`: of the grid. The last one tells,
/// behind `before()`.
template <class Before>
__device__ void tell_if_last(const Tell& tell, unsigned blocks, const Before& before) {
  __syncthreads();
  if (threadIdx.x > 0) return;
  __threadfence();
  if (atomicAdd(&tell.counters->blocks, 1) + 1 < blocks) return;
  tell.counters->blocks = 0;
  before();
  __threadfence_system();  // what all blocks wrote is there before the flags
  if (tell.flag) *static_cast<volatile std::uint32_t*>(tell.flag) = 1;
  *static_cast<volatile std::uint32_t*>(tell.done) = tell.value;
}

__device__ inline void tell_if_last(const Tell& tell, unsigned blocks) {
  tell_if_last(tell, blocks, [] {});
}

}  // namespace mpress::gpu
