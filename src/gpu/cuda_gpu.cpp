// libmpress_cuda.so: the GPUs of NVIDIA. Nothing here throws out of the library, and no error of
// ours is left for the program to find.

#include <algorithm>
#include <string>

#include "gpu/cuda_driver.hpp"
#include "gpu/cuda_lane.hpp"
#include "gpu/gpu.hpp"
#include "memory/kind.hpp"

namespace mpress::gpu {
namespace {

class CudaGpu final : public Gpu {
 public:
  CudaGpu() {
    int devices = 0;
    memory::check(cudaGetDeviceCount(&devices), "the number of devices");
    if (devices == 0) throw memory::CudaError("the number of devices", cudaErrorNoDevice);
    char device[128] = "";
    driver().get_name(device, sizeof device, 0);
    name_ = "CUDA " + std::to_string(CUDART_VERSION / 1000) + "." +
            std::to_string(CUDART_VERSION % 1000 / 10) + ", " + device;
  }

  std::uint32_t version() const override { return interface_version; }
  const char* name() const override { return name_.c_str(); }

  int locate(const void* pointer) const override { return memory::locate(pointer); }

  std::unique_ptr<Lane> open_lane(int device) override {
    try {
      return std::make_unique<CudaLane>(device);
    } catch (const std::exception&) {
      return nullptr;
    }
  }

  void* allocate(Place place, int device, std::size_t bytes) override {
    try {
      const ContextScope scope(device);
      void* memory = nullptr;
      bytes = std::max<std::size_t>(bytes, 1);  // of none, CUDA makes a null pointer
      const cudaError_t code =
          place == Place::device
              ? cudaMalloc(&memory, bytes)
              : cudaHostAlloc(&memory, bytes, cudaHostAllocMapped | cudaHostAllocPortable);
      memory::check(code, "memory");
      return memory;
    } catch (const std::exception&) {
      return nullptr;
    }
  }

  void release(Place place, int device, void* memory) override {
    try {
      const ContextScope scope(device);
      memory::check(place == Place::device ? cudaFree(memory) : cudaFreeHost(memory), "memory");
    } catch (const std::exception&) {
      // The device is lost, and its memory with it.
    }
  }

 private:
  std::string name_;
};

}  // namespace
}  // namespace mpress::gpu

extern "C" [[gnu::visibility("default")]] mpress::gpu::Gpu* mpress_gpu() {
  try {
    static auto* const immortal = new mpress::gpu::CudaGpu;
    return immortal;
  } catch (const std::exception&) {
    return nullptr;
  }
}
