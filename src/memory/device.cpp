#include "memory/device.hpp"

#include <bit>
#include <cstdint>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

namespace mpress::memory {
namespace {

/// A pool of our own a device, so that what it keeps does not depend on the program's settings of
/// the device's default pool. Never destroyed: buffers may outlive everything.
cudaMemPool_t pool_of(int device) {
  static std::mutex mutex;
  static std::vector<cudaMemPool_t> pools;
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

/// Reports live in pages of pinned memory that are kept for ever.
struct Reports {
  static constexpr std::size_t page = 256;
  std::mutex mutex;
  std::vector<codec::cuda::Result*> idle;
};

Reports& reports() {
  static auto* const immortal = new Reports;
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
  check(cudaGetDevice(&before_), "the current device");
  if (before_ == device) return;
  check(cudaSetDevice(device), "making a device current");
  changed_ = true;
}

DeviceScope::~DeviceScope() {
  if (changed_) cudaSetDevice(before_);
}

int device_of(const void* pointer) {
  cudaPointerAttributes attributes;
  check(cudaPointerGetAttributes(&attributes, pointer), "asking where a pointer belongs");
  const bool device =
      attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged;
  return device ? attributes.device : -1;
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
    // The default streams are those of the current device.
    int before = device_;
    cudaGetDevice(&before);
    if (before != device_) cudaSetDevice(device_);
    // cudaFree() does not wait for those who use memory of a pool.
    if (!knows_stream_) cudaDeviceSynchronize();
    const cudaError_t code = knows_stream_ ? cudaFreeAsync(data_, stream_) : cudaFree(data_);
    if (code != cudaSuccess) cudaGetLastError();  // not a failure of the program's next call
    if (before != device_) cudaSetDevice(before);
  }
  data_ = nullptr;
  bytes_ = 0;
}

PinnedResult::PinnedResult() {
  Reports& all = reports();
  std::lock_guard lock(all.mutex);
  if (all.idle.empty()) {
    void* page = nullptr;
    check(cudaHostAlloc(&page, Reports::page * sizeof(codec::cuda::Result),
                        cudaHostAllocMapped | cudaHostAllocPortable),
          "pinned memory");
    auto* first = static_cast<codec::cuda::Result*>(page);
    for (std::size_t i = 0; i < Reports::page; ++i) all.idle.push_back(first + i);
  }
  result_ = all.idle.back();
  all.idle.pop_back();
  *result_ = {};
}

PinnedResult::PinnedResult(PinnedResult&& other) noexcept
    : result_(std::exchange(other.result_, nullptr)) {}

PinnedResult::~PinnedResult() {
  if (!result_) return;
  Reports& all = reports();
  std::lock_guard lock(all.mutex);
  all.idle.push_back(result_);
}

codec::cuda::Result PinnedResult::wait(cudaStream_t stream) const {
  const auto reported = [&] { return __atomic_load_n(&result_->sequence, __ATOMIC_ACQUIRE) != 0; };
  // A query costs more than many looks at the flag; it finds launches that failed.
  for (std::uint32_t looks = 1; !reported(); ++looks) {
    if (looks % 4096 != 0) continue;
    const cudaError_t code = cudaStreamQuery(stream);
    if (code == cudaErrorNotReady) continue;
    check(code, "work on the stream");
    if (!reported()) throw CudaError("the device wrote no report", cudaErrorUnknown);
  }
  return *result_;
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
  if (std::uncaught_exceptions() > exceptions_) {
    // Of a call's kernels some may have been launched: they shall not write a report that belongs
    // to a later call by then, and what they left here is not zero.
    cudaStreamSynchronize(stream_);
    if (cudaMemsetAsync(data_, 0, capacity_, stream_) != cudaSuccess) return;
  }
  Workspaces& all = workspaces();
  if (cudaEventRecord(last_use_, stream_) != cudaSuccess) return;  // the context is lost
  std::lock_guard lock(all.mutex);
  all.idle.push_back({data_, capacity_, device_, stream_, last_use_});
}

}  // namespace mpress::memory
