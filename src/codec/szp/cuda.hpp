// The CUDA twin of szp; codec_cuda.hpp has the contract.
#pragma once

#include "codec/codec_cuda.hpp"
#include "codec/szp/format.hpp"

namespace mpress::codec::szp::cuda {

using namespace codec::cuda;

std::size_t workspace_bytes(ElementType type, std::size_t count, std::size_t segments);

/// Encodes within `value`, absolute or relative to what `range` says; a slack is absolute.
cudaError_t encode(ElementType type, Bound bound, const Grid& value, Mode mode,
                   std::span<const EncodeSegment> segments, void* workspace, cudaStream_t stream,
                   RangeOf range, std::span<const mpress::Extent> extents);

/// codec_cuda.hpp
cudaError_t finite_extent(ElementType type, const void* elements, std::size_t count,
                          void* workspace, mpress::Extent* extent, std::uint32_t sequence,
                          cudaStream_t stream);

cudaError_t decode(ElementType type, std::span<const DecodeSegment> segments, Combine combine,
                   void* workspace, cudaStream_t stream);

/// `elements`: what those among the summands count as.
cudaError_t add(ElementType type, std::span<const AddSegment> segments, const EncodedAs& elements,
                void* workspace, cudaStream_t stream);

}  // namespace mpress::codec::szp::cuda
