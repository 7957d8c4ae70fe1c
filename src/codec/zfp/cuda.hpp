// The CUDA twin of zfp; codec_cuda.hpp has the contract.
#pragma once

#include "codec/codec_cuda.hpp"

namespace mpress::codec::zfp::cuda {

using namespace codec::cuda;

std::size_t workspace_bytes(ElementType type, std::size_t count, std::size_t segments);

/// Encodes in blocks of `block_bits`.
cudaError_t encode(ElementType type, std::uint32_t block_bits,
                   std::span<const EncodeSegment> segments, void* workspace, cudaStream_t stream);

cudaError_t decode(ElementType type, std::uint32_t block_bits,
                   std::span<const DecodeSegment> segments, Combine combine, void* workspace,
                   cudaStream_t stream);

}  // namespace mpress::codec::zfp::cuda
