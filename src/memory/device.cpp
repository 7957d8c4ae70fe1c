#include "memory/device.hpp"

#include <cuda.h>
#include <dlfcn.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace mpress::memory {
namespace {

/// Functions of the driver, which the runtime has loaded. With the runtime alone a thread could not
/// get back to a device that it has no context on: cudaSetDevice() makes one, which takes hundreds
/// of megabytes of a GPU that belongs, it may be, to another rank.
struct Driver {
  decltype(&cuDeviceGet) device = find<decltype(&cuDeviceGet)>("cuDeviceGet");
  decltype(&cuDevicePrimaryCtxRetain) retain =
      find<decltype(&cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain");
  decltype(&cuCtxPushCurrent) push = find<decltype(&cuCtxPushCurrent)>("cuCtxPushCurrent_v2");
  decltype(&cuCtxPopCurrent) pop = find<decltype(&cuCtxPopCurrent)>("cuCtxPopCurrent_v2");

 private:
  template <class Function>
  static Function find(const char* name) {
    static void* const library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    void* const found = library ? ::dlsym(library, name) : nullptr;
    if (!found) throw CudaError(name, cudaErrorInsufficientDriver);
    return reinterpret_cast<Function>(found);
  }
};

const Driver& driver() {
  static const Driver found;
  return found;
}

/// Errors of the driver have the runtime's numbers.
void check_driver(CUresult code, const char* what) {
  if (code != CUDA_SUCCESS) throw CudaError(what, static_cast<cudaError_t>(code));
}

/// A pool of our own a device, so that what it keeps does not depend on the program's settings of
/// the device's default pool. Never destroyed: buffers may outlive everything.
cudaMemPool_t pool_of(int device) {
  static std::mutex mutex;
  static auto& pools = *new std::vector<cudaMemPool_t>;
  std::lock_guard lock(mutex);
  const auto index = static_cast<std::size_t>(device);
  if (index >= pools.size()) pools.resize(index + 1);
  if (!pools[index]) {
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = {cudaMemLocationTypeDevice, device};
    check(cudaMemPoolCreate(&pools[index], &properties), "a memory pool");
    std::uint64_t keep = UINT64_MAX;
    check(cudaMemPoolSetAttribute(pools[index], cudaMemPoolAttrReleaseThreshold, &keep),
          "the memory pool's threshold");
  }
  return pools[index];
}

/// Slots live in pages of pinned memory that are kept for ever.
struct Slots {
  static constexpr std::size_t in_page = 4096 / PinnedSlot::bytes;
  std::mutex mutex;
  std::size_t pages = 0;
  std::vector<void*> idle;  ///< has room for all, so that giving one back allocates nothing
};

Slots& slots() {
  static auto* const immortal = new Slots;
  return *immortal;
}

struct IdleWorkspace {
  void* data;
  std::size_t capacity;
  int device;
  cudaStream_t stream;
  cudaEvent_t last_use;
};

struct Workspaces {
  std::mutex mutex;
  std::vector<IdleWorkspace> idle;
};

Workspaces& workspaces() {
  static auto* const immortal = new Workspaces;
  return *immortal;
}

constexpr std::size_t smallest_workspace = 1 << 16;

}  // namespace

void check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  cudaGetLastError();  // reported here, so not again by the program's next call
  throw CudaError(what, code);
}

DeviceScope::DeviceScope(int device) {
  int current = 0;
  check(cudaGetDevice(&current), "the current device");
  if (current == device) return;
  CUdevice handle = 0;
  CUcontext context = nullptr;
  check_driver(driver().device(&handle, device), "making a device current");
  // The runtime's own context of the device, never released: the process has one a device.
  check_driver(driver().retain(&context, handle), "making a device current");
  check_driver(driver().push(context), "making a device current");
  changed_ = true;
}

DeviceScope::~DeviceScope() {
  CUcontext context = nullptr;
  if (changed_) driver().pop(&context);
}

DeviceBuffer::DeviceBuffer(int device, std::size_t bytes, cudaStream_t stream)
    : bytes_(bytes), device_(device), stream_(stream) {
  if (bytes == 0) return;
  const DeviceScope scope(device);
  void* data = nullptr;
  check(cudaMallocFromPoolAsync(&data, bytes, pool_of(device), stream), "device memory");
  data_ = static_cast<std::byte*>(data);
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      device_(other.device_),
      stream_(other.stream_),
      knows_stream_(other.knows_stream_) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  if (this == &other) return *this;
  reset();
  data_ = std::exchange(other.data_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  device_ = other.device_;
  stream_ = other.stream_;
  knows_stream_ = other.knows_stream_;
  return *this;
}

void DeviceBuffer::reset() {
  if (data_) {
    try {
      const DeviceScope scope(device_);  // the default streams are those of the current device
      // cudaFree() does not wait for those who use memory of a pool.
      if (!knows_stream_) check(cudaDeviceSynchronize(), "waiting for the device");
      check(knows_stream_ ? cudaFreeAsync(data_, stream_) : cudaFree(data_), "giving memory back");
    } catch (const CudaError&) {
      // The context is lost, and the memory with it.
    }
  }
  data_ = nullptr;
  bytes_ = 0;
}

PinnedSlot::PinnedSlot() {
  Slots& all = slots();
  std::lock_guard lock(all.mutex);
  if (all.idle.empty()) {
    all.idle.reserve((all.pages + 1) * Slots::in_page);
    void* page = nullptr;
    check(cudaHostAlloc(&page, Slots::in_page * bytes, cudaHostAllocMapped | cudaHostAllocPortable),
          "pinned memory");
    ++all.pages;
    for (std::size_t i = 0; i < Slots::in_page; ++i) {
      all.idle.push_back(static_cast<std::byte*>(page) + i * bytes);
    }
  }
  data_ = all.idle.back();
  all.idle.pop_back();
  std::memset(data_, 0, bytes);
}

PinnedSlot::PinnedSlot(PinnedSlot&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}

PinnedSlot::~PinnedSlot() {
  if (!data_) return;
  Slots& all = slots();
  std::lock_guard lock(all.mutex);
  all.idle.push_back(data_);
}

Workspace::Workspace(int device, std::size_t bytes, cudaStream_t stream)
    : device_(device), stream_(stream), exceptions_(std::uncaught_exceptions()) {
  const DeviceScope scope(device);
  Workspaces& all = workspaces();
  {
    std::lock_guard lock(all.mutex);
    auto best = all.idle.end();
    for (auto it = all.idle.begin(); it != all.idle.end(); ++it) {
      if (it->device != device || it->capacity < bytes) continue;
      if (best == all.idle.end() || (it->stream == stream && best->stream != stream)) best = it;
    }
    if (best != all.idle.end()) {
      data_ = best->data;
      capacity_ = best->capacity;
      last_use_ = best->last_use;
      all.idle.erase(best);
    }
  }
  if (data_) {
    // Also where the stream is the same: its handle may be that of a younger stream.
    check(cudaStreamWaitEvent(stream, last_use_, 0), "waiting for a workspace");
    return;
  }
  capacity_ = std::bit_ceil(bytes < smallest_workspace ? smallest_workspace : bytes);
  check(cudaEventCreateWithFlags(&last_use_, cudaEventDisableTiming), "an event");
  check(cudaMallocFromPoolAsync(&data_, capacity_, pool_of(device), stream), "a workspace");
  check(cudaMemsetAsync(data_, 0, capacity_, stream), "a workspace");
}

Workspace::~Workspace() {
  if (!data_) return;
  try {
    const DeviceScope scope(device_);  // the default streams are those of the current device
    if (std::uncaught_exceptions() > exceptions_) {
      // Of a call's kernels some may have been launched: they shall not write a report that belongs
      // to a later call by then, and what they left here is not zero.
      check(cudaStreamSynchronize(stream_), "a workspace");
      check(cudaMemsetAsync(data_, 0, capacity_, stream_), "a workspace");
    }
    check(cudaEventRecord(last_use_, stream_), "a workspace");
  } catch (const CudaError&) {
    return;  // the context is lost
  }
  try {
    Workspaces& all = workspaces();
    std::lock_guard lock(all.mutex);
    all.idle.push_back({data_, capacity_, device_, stream_, last_use_});
  } catch (const std::bad_alloc&) {
    cudaFreeAsync(data_, stream_);
    cudaEventDestroy(last_use_);
  }
}

}  // namespace mpress::memory
