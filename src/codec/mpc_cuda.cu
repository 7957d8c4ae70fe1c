#include "codec/mpc_cuda.hpp"

#include "codec/cuda_support.cuh"
#include "codec/mpc.hpp"

namespace mpress::codec::mpc::cuda {

std::size_t workspace_bytes(ElementType, std::size_t count, std::size_t segments) {
  return codec::cuda::workspace_bytes(count, segments);
}

cudaError_t encode(ElementType, unsigned dim, std::span<const EncodeSegment>, void*, cudaStream_t) {
  return cudaErrorNotSupported;
}

cudaError_t decode(ElementType, std::span<const DecodeSegment>, Combine, void*,
                   cudaStream_t) {
  return cudaErrorNotSupported;
}

}  // namespace mpress::codec::mpc::cuda
