#include "codec/codec_cuda.hpp"

#include "codec/codec.hpp"
#include "codec/cuda/nvtx_range.hpp"
#include "codec/mpc/cuda.hpp"
#include "codec/szp/cuda.hpp"
#include "codec/zfp/cuda.hpp"

namespace mpress::codec::cuda {

std::size_t workspace_bytes(const Spec& spec, ElementType type, std::size_t count,
                            std::size_t segments) {
  switch (spec.codec) {
    case Codec::mpc: return mpc::cuda::workspace_bytes(type, count, segments);
    case Codec::zfp: return zfp::cuda::workspace_bytes(type, count, segments);
    case Codec::szp: return szp::cuda::workspace_bytes(type, count, segments);
    case Codec::none:
    case Codec::automatic: break;
  }
  return 0;
}

cudaError_t encode(const Spec& spec, ElementType type, std::span<const EncodeSegment> segments,
                   void* workspace, cudaStream_t stream, RangeOf range,
                   std::span<const Extent> extents) {
  const NvtxRange nvtx("encode", spec, type, segments);
  switch (spec.codec) {
    case Codec::mpc: return mpc::cuda::encode(type, spec.dim, segments, workspace, stream);
    case Codec::zfp:
      return zfp::cuda::encode(type, zfp_block_bits(spec.value, type), segments, workspace, stream);
    case Codec::szp:
      return szp::cuda::encode(type, spec.bound, grid_of(spec), spec.mode, segments, workspace,
                               stream, range, extents);
    case Codec::none:
    case Codec::automatic: break;
  }
  return cudaErrorInvalidValue;
}

cudaError_t decode(const Spec& spec, ElementType type, std::span<const DecodeSegment> segments,
                   Combine combine, void* workspace, cudaStream_t stream) {
  const NvtxRange range("decode", spec, type, segments);
  switch (spec.codec) {
    case Codec::mpc: return mpc::cuda::decode(type, segments, combine, workspace, stream);
    case Codec::zfp:
      return zfp::cuda::decode(type, zfp_block_bits(spec.value, type), segments, combine, workspace,
                               stream);
    case Codec::szp: return szp::cuda::decode(type, segments, combine, workspace, stream);
    case Codec::none:
    case Codec::automatic: break;
  }
  return cudaErrorInvalidValue;
}

cudaError_t add(const Spec& spec, ElementType type, std::span<const AddSegment> segments,
                void* workspace, cudaStream_t stream) {
  const NvtxRange range("add", spec, type, segments);
  if (spec.codec != Codec::szp) return cudaErrorInvalidValue;
  const Grid grid = spec.bound == Bound::abs ? grid_of(spec) : Grid{};
  const szp::EncodedAs elements{grid, spec.mode};
  return szp::cuda::add(type, segments, elements, workspace, stream);
}

cudaError_t finite_extent(ElementType type, const void* elements, std::size_t count,
                          void* workspace, Extent* extent, std::uint32_t sequence,
                          cudaStream_t stream) {
  return szp::cuda::finite_extent(type, elements, count, workspace, extent, sequence, stream);
}

}  // namespace mpress::codec::cuda
