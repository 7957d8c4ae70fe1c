// The kernel that combines several arrays of elements into one.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>

#include "codec/combine.hpp"
#include "codec/element.hpp"
#include "gpu/cuda/tell.hpp"

namespace mpress::gpu {

/// See CodecQueue::combine(); on the current device. Tells when it is done.
cudaError_t combine_elements(codec::Combine how, ElementType type,
                             std::span<const void* const> inputs, void* out, std::size_t count,
                             bool wide, const Tell& tell, cudaStream_t stream);

/// See CodecQueue::combine_in_any_order(). `inputs_there`: the array of `inputs` as the device sees
/// it, for more than CodecQueue::most_inputs.
cudaError_t combine_in_any_order(codec::Combine how, ElementType type,
                                 std::span<const void* const> inputs,
                                 const void* const* inputs_there, void* out, std::size_t count,
                                 const codec::Grid& grid, const Tell& tell, cudaStream_t stream);

}  // namespace mpress::gpu
