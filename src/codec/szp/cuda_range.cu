#include "codec/szp/cuda.hpp"
#include "codec/szp/cuda_range.cuh"

namespace mpress::codec::szp::cuda {
namespace {

template <class T>
__global__ void write_width(RangeKeys* range, double* width) {
  *width = width_of<T>(*range);
  *range = {};
}

template <class T>
cudaError_t width_of_elements(ElementType type, const void* elements, std::size_t count,
                              RangeKeys* range, double* width, cudaStream_t stream) {
  Batch<1> batch;
  batch.segments[0] = {static_cast<const unsigned char*>(elements), nullptr, count, 0, nullptr,
                       nullptr};
  batch.first_task[0] = 0;
  batch.count = 1;
  launch_find_ranges<T>(batch, range, false, stream);
  write_width<T><<<1, 1, 0, stream>>>(range, width);
  return cudaGetLastError();
}

}  // namespace

cudaError_t finite_width(ElementType type, const void* elements, std::size_t count,
                         void* workspace, double* width, cudaStream_t stream) {
  // The control block stays as it is; whatever is behind it is zero between calls.
  auto* const range =
      reinterpret_cast<RangeKeys*>(static_cast<unsigned char*>(workspace) + sizeof(Control));
  return type == ElementType::f32
             ? width_of_elements<float>(type, elements, count, range, width, stream)
             : width_of_elements<double>(type, elements, count, range, width, stream);
}

}  // namespace mpress::codec::szp::cuda
