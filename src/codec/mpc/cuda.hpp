// The CUDA twin of mpc; codec_cuda.hpp has the contract.
#pragma once

#include "codec/codec_cuda.hpp"

namespace mpress::codec::mpc::cuda {

using namespace codec::cuda;

std::size_t workspace_bytes(ElementType type, std::size_t count, std::size_t segments);

/// Encodes interleaved `dim` at a time; 0: chosen as choose_dim() does, for each segment.
cudaError_t encode(ElementType type, unsigned dim, std::span<const EncodeSegment> segments,
                   void* workspace, cudaStream_t stream);

cudaError_t decode(ElementType type, std::span<const DecodeSegment> segments, Combine combine,
                   void* workspace, cudaStream_t stream);

}  // namespace mpress::codec::mpc::cuda
