#include "codec/cuda/support.cuh"

#include <array>
#include <atomic>

namespace mpress::codec::cuda {
namespace {

/// What `ask` says of the current device, asked once a device; 0 where there is none.
template <class Ask>
unsigned known(Ask ask) {
  static std::array<std::atomic<int>, 64> answers{};
  int device = 0;
  cudaGetDevice(&device);
  const auto index = static_cast<std::size_t>(device);
  int answer = index < answers.size() ? answers[index].load(std::memory_order_relaxed) : 0;
  if (answer == 0) {
    answer = ask(device);
    if (index < answers.size()) answers[index].store(answer, std::memory_order_relaxed);
  }
  return static_cast<unsigned>(answer);
}

/// 0 where it is not known.
int attribute_of(int device, cudaDeviceAttr attribute) {
  int value = 0;
  return cudaDeviceGetAttribute(&value, attribute, device) == cudaSuccess ? value : 0;
}

}  // namespace

unsigned multiprocessors() {
  const unsigned count =
      known([](int device) { return attribute_of(device, cudaDevAttrMultiProcessorCount); });
  return count > 0 ? count : 1;  // grids are computed all the same; what fails is their launch
}

unsigned compute_capability() {
  return known([](int device) {
    return 10 * attribute_of(device, cudaDevAttrComputeCapabilityMajor) +
           attribute_of(device, cudaDevAttrComputeCapabilityMinor);
  });
}

}  // namespace mpress::codec::cuda
