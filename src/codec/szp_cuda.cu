#include "codec/szp_cuda.hpp"

#include "codec/cuda_support.cuh"
#include "codec/szp.hpp"

namespace mpress::codec::szp::cuda {

std::size_t workspace_bytes(ElementType, std::size_t count, std::size_t segments) {
  return codec::cuda::workspace_bytes(count, segments);
}

cudaError_t encode(ElementType, Bound bound, double value, Mode mode, std::span<const EncodeSegment>, void*, cudaStream_t) {
  return cudaErrorNotSupported;
}

cudaError_t decode(ElementType, std::span<const DecodeSegment>, Combine, void*,
                   cudaStream_t) {
  return cudaErrorNotSupported;
}

}  // namespace mpress::codec::szp::cuda
