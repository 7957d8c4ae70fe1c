// The kernel that adds up what several members bring in quanta of szp, and waits for theirs.
#pragma once

#include <cuda_runtime_api.h>

#include "codec/element.hpp"
#include "gpu/collective_queue.hpp"
#include "gpu/cuda/tell.hpp"

namespace mpress::gpu {

/// See CollectiveQueue::sum_jointly(); on the current device. `tally`: JointSum::tally as the
/// device sees it. Tells when it is done, or undone.
cudaError_t sum_jointly(ElementType type, const JointSum& sum, JointSum::Tally* tally,
                        const Tell& tell, cudaStream_t stream);

}  // namespace mpress::gpu
