#include "codec/cuda_support.cuh"

#include <array>
#include <atomic>

namespace mpress::codec::cuda {

unsigned multiprocessors() {
  static std::array<std::atomic<int>, 64> known{};
  int device = 0;
  cudaGetDevice(&device);
  auto& entry = known[static_cast<std::size_t>(device) % known.size()];
  int count = entry.load(std::memory_order_relaxed);
  if (count == 0) {
    cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
    entry.store(count, std::memory_order_relaxed);
  }
  return static_cast<unsigned>(count);
}

}  // namespace mpress::codec::cuda
