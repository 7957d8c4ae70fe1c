// Times of the CUDA twins, as `mpress bench codec --device cuda` reports them.
#pragma once

#include "gpu/arrays.hpp"

namespace mpress::gpu {

/// Arrays::time(). Throws memory::CudaError.
Times time_codec(const Spec& spec, ElementType type, const void* elements, std::size_t count,
                 std::size_t segments, int device, int repeat);

}  // namespace mpress::gpu
