#include "codec/szp/cuda.hpp"
#include "codec/szp/cuda_range.cuh"

namespace mpress::codec::szp::cuda {
namespace {

template <class T>
__global__ void write_extent(ExtentKeys* keys, mpress::Extent* extent, std::uint32_t sequence) {
  const bool any = keys->greatest != 0;
  const auto least = static_cast<typename Traits<T>::Bits>(~keys->least);
  extent->min = any ? value_of<T>(least) : 0;
  extent->max = any ? value_of<T>(keys->greatest) : 0;
  const std::uint64_t flags =
      (any ? mpress::Extent::finite : 0) | (keys->nonfinite != 0 ? mpress::Extent::nonfinite : 0);
  *keys = {};
  static_assert(offsetof(mpress::Extent, flags) == 16 && offsetof(mpress::Extent, sequence) == 20);
  asm volatile(
      "st.release.sys.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(&extent->flags)),
      "l"(flags | std::uint64_t{sequence} << 32)
      : "memory");
}

template <class T>
cudaError_t extent_of(ElementType type, const void* elements, std::size_t count, ExtentKeys* keys,
                      mpress::Extent* extent, std::uint32_t sequence, cudaStream_t stream) {
  Batch<1> batch;
  batch.segments[0] = {
      static_cast<const unsigned char*>(elements), nullptr, count, 0, nullptr, nullptr};
  batch.first_task[0] = 0;
  batch.count = 1;
  launch_find_ranges<T, true>(batch, keys, false, stream);
  write_extent<T><<<1, 1, 0, stream>>>(keys, extent, sequence);
  return cudaGetLastError();
}

}  // namespace

cudaError_t finite_extent(ElementType type, const void* elements, std::size_t count,
                          void* workspace, mpress::Extent* extent, std::uint32_t sequence,
                          cudaStream_t stream) {
  // The control block stays as it is; whatever is behind it is zero between calls.
  static_assert(sizeof(ExtentKeys) <= sizeof(SegmentState));
  auto* const keys =
      reinterpret_cast<ExtentKeys*>(static_cast<unsigned char*>(workspace) + sizeof(Control));
  return type == ElementType::f32
             ? extent_of<float>(type, elements, count, keys, extent, sequence, stream)
             : extent_of<double>(type, elements, count, keys, extent, sequence, stream);
}

}  // namespace mpress::codec::szp::cuda
