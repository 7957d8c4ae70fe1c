// The kernel by which several members bring each other blocks, and that waits for the others'.
#pragma once

#include <cuda_runtime_api.h>

#include "gpu/collective_queue.hpp"
#include "gpu/cuda/tell.hpp"

namespace mpress::gpu {

/// See CollectiveQueue::move_jointly(); on the current device. `undone`: JointMove::undone as the
/// device sees it. Tells when it is done, or undone.
cudaError_t move_jointly(const JointMove& move, std::uint32_t* undone, const Tell& tell,
                         cudaStream_t stream);

}  // namespace mpress::gpu
