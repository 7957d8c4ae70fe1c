#include "codec/zfp/cuda_complete.cuh"
#include "codec/zfp/cuda_encode.cuh"

namespace mpress::codec::zfp::cuda {
namespace {

template <typename Element, int words>
cudaError_t encode_with(std::uint32_t block_bits, std::span<const EncodeSegment> segments,
                        void* workspace, cudaStream_t stream) {
  constexpr unsigned residency = encode_residency<Element, words>;
  const Workspace work = workspace_of(workspace, segments.size());
  const unsigned run = chunks_a_task<Element, residency>(segments);
  return for_each_batch(
      segments, tasks_of<Element>(run), [&]<unsigned capacity>(const Batch<capacity>& batch) {
        const Grid grid = grid_for<residency>(batch, run);
        encode_kernel<Element, words>
            <<<grid.blocks, threads, 0, stream>>>(batch, work, block_bits, grid, run);
        complete_kernel<Element>
            <<<multiprocessors() * 2, threads, 0, stream>>>(batch, work, block_bits, run);
      });
}

}  // namespace

std::size_t workspace_bytes(ElementType type, std::size_t count, std::size_t segments) {
  return codec::cuda::workspace_bytes(slots_of(type, count, segments), segments);
}

cudaError_t encode(ElementType type, std::uint32_t block_bits,
                   std::span<const EncodeSegment> segments, void* workspace, cudaStream_t stream) {
  if (block_bits < min_block_bits(type) || block_bits > max_block_bits(type)) {
    return cudaErrorInvalidValue;
  }
  return with_words(type, block_bits, [&]<typename Element, int words>() {
    return encode_with<Element, words>(block_bits, segments, workspace, stream);
  });
}

}  // namespace mpress::codec::zfp::cuda
