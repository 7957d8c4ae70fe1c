// The kernels that combine what several members bring, and wait for each other.
#pragma once

#include <cuda_runtime_api.h>

#include "codec/combine.hpp"
#include "codec/element.hpp"
#include "gpu/collective_queue.hpp"
#include "gpu/cuda/tell.hpp"

namespace mpress::gpu {

/// See CollectiveQueue::combine_jointly(); on the current device. `undone`: Joint::undone as the
/// device sees it. Tells when it is done, or undone.
cudaError_t combine_jointly(codec::Combine how, ElementType type, const Joint& joint,
                            std::uint32_t* undone, const Tell& tell, cudaStream_t stream);

}  // namespace mpress::gpu
