#include "codec/zfp/cuda_decode.cuh"

namespace mpress::codec::zfp::cuda {
namespace {

template <typename Element, int words, bool plain>
cudaError_t decode_with(std::uint32_t block_bits, std::span<const DecodeSegment> segments,
                        Combine combine, void* workspace, cudaStream_t stream) {
  constexpr unsigned residency = decode_residency<words, plain>;
  const Workspace work = workspace_of(workspace, segments.size());
  const unsigned run = chunks_a_task<Element, residency>(segments);
  return for_each_batch(
      segments, tasks_of<Element>(run), [&]<unsigned capacity>(const Batch<capacity>& batch) {
        const Grid grid = grid_for<residency>(batch, run);
        decode_kernel<Element, words, plain>
            <<<grid.blocks, threads, 0, stream>>>(batch, work, block_bits, grid, run, combine);
      });
}

}  // namespace

cudaError_t decode(ElementType type, std::uint32_t block_bits,
                   std::span<const DecodeSegment> segments, Combine combine, void* workspace,
                   cudaStream_t stream) {
  if (block_bits < min_block_bits(type) || block_bits > max_block_bits(type)) {
    return cudaErrorInvalidValue;
  }
  return with_words(type, block_bits, [&]<typename Element, int words>() {
    return combine == Combine::replace
               ? decode_with<Element, words, true>(block_bits, segments, combine, workspace, stream)
               : decode_with<Element, words, false>(block_bits, segments, combine, workspace,
                                                    stream);
  });
}

}  // namespace mpress::codec::zfp::cuda
