// libmpress_cuda.so: the GPUs of NVIDIA. Nothing here throws out of the library, and no error of
// ours is left for the program to find.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string>

#include "gpu/cuda/driver.hpp"
#include "gpu/cuda/prior_work.hpp"
#include "gpu/cuda/queue.hpp"
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

  std::unique_ptr<Queue> open_queue(int device, Priority priority) override {
    try {
      prepare_default_work(device);
      return std::make_unique<CudaQueue>(device, priority);
    } catch (const std::exception&) {
      return nullptr;
    }
  }

  std::shared_ptr<const PriorWork> work_of(int device, void* stream) override {
    return gpu::work_of(device, stream);
  }

  std::shared_ptr<const PriorWork> default_work(int device) override {
    return gpu::default_work(device);
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

  std::uint64_t identity(int device) override {
    if (device < 0 || static_cast<std::size_t>(device) >= identities_.size()) return 0;
    std::atomic<std::uint64_t>& known = identities_[static_cast<std::size_t>(device)];
    if (known.load(std::memory_order_relaxed) == 0) {
      known.store(find_identity(device), std::memory_order_relaxed);
    }
    return known.load(std::memory_order_relaxed);
  }

  double speed(int device) override {
    int multiprocessors = 0, kilohertz = 0;
    if (cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device) !=
            cudaSuccess ||
        cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, device) != cudaSuccess) {
      return 0;
    }
    return multiprocessors * (kilohertz * 1e-6);
  }

  std::size_t memory_bytes(int device) override {
    try {
      const ContextScope scope(device);
      std::size_t free = 0, total = 0;
      memory::check(cudaMemGetInfo(&free, &total), "the size of memory");
      return total;
    } catch (const std::exception&) {
      return 0;
    }
  }

  bool find_block(int device, const void* pointer, Block& block) override {
    try {
      const ContextScope scope(device);
      const Driver& cuda = driver();
      if (!cuda.get_range || !cuda.get_attribute) return false;
      const auto address = reinterpret_cast<CUdeviceptr>(pointer);
      CUdeviceptr base = 0;
      unsigned long long id = 0;
      if (cuda.get_attribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, address) != CUDA_SUCCESS ||
          cuda.get_range(&base, &block.bytes, address) != CUDA_SUCCESS) {
        return false;
      }
      block.base = reinterpret_cast<std::byte*>(base);
      block.id = id;
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

  bool share(int device, void* memory, MemoryHandle& handle) override {
    static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(MemoryHandle));
    try {
      const ContextScope scope(device);
      cudaIpcMemHandle_t made;
      memory::check(cudaIpcGetMemHandle(&made, memory), "a handle of memory");
      std::memcpy(handle.data(), &made, sizeof made);
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

  void* open(int device, const MemoryHandle& handle) override {
    try {
      const ContextScope scope(device);
      cudaIpcMemHandle_t made;
      std::memcpy(&made, handle.data(), sizeof made);
      void* memory = nullptr;
      memory::check(cudaIpcOpenMemHandle(&memory, made, cudaIpcMemLazyEnablePeerAccess),
                    "another process's memory");
      return memory;
    } catch (const std::exception&) {
      return nullptr;
    }
  }

  void close(int device, void* memory) override {
    try {
      const ContextScope scope(device);
      memory::check(cudaIpcCloseMemHandle(memory), "another process's memory");
    } catch (const std::exception&) {
      // The device is lost, and the mapping with it.
    }
  }

  bool map(int device, void* memory, std::size_t bytes) override {
    try {
      const ContextScope scope(device);
      memory::check(
          cudaHostRegister(memory, bytes, cudaHostRegisterMapped | cudaHostRegisterPortable),
          "mapped memory");
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

  void unmap(int device, void* memory) override {
    try {
      const ContextScope scope(device);
      memory::check(cudaHostUnregister(memory), "mapped memory");
    } catch (const std::exception&) {
      // The device is lost, and the mapping with it.
    }
  }

 private:
  static std::uint64_t find_identity(int device) {
    try {
      const ContextScope scope(device);
      cudaDeviceProp properties;
      memory::check(cudaGetDeviceProperties(&properties, device), "a device's properties");
      std::uint64_t words[2];
      static_assert(sizeof words == sizeof properties.uuid);
      std::memcpy(words, &properties.uuid, sizeof words);
      return words[0] ^ words[1];
    } catch (const std::exception&) {
      return 0;
    }
  }

  std::string name_;
  std::array<std::atomic<std::uint64_t>, 64> identities_{};  ///< 0: not asked for yet
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
