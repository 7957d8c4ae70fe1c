// The memory of GPUs: pinned slots, devices made current, and who a pointer
// belongs to, on every GPU that there is. Exit status 0 where all held.
#include <cuda_runtime_api.h>

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "memory/device.hpp"
#include "memory/kind.hpp"
#include "unit/check.hpp"

namespace {

using namespace mpress::memory;

constexpr std::size_t mib = std::size_t{1} << 20;

void require(cudaError_t code) { mpress::memory::check(code, "a call of the test"); }

int current() {
  int device = -1;
  require(cudaGetDevice(&device));
  return device;
}

/// A block that was pinned while device 0 was current serves every device.
void devices_copy_to_and_from(int device) {
  const auto pinned = [] {
    void* memory = nullptr;
    require(cudaHostAlloc(&memory, mib, cudaHostAllocMapped | cudaHostAllocPortable));
    return std::unique_ptr<std::byte, decltype(&cudaFreeHost)>(static_cast<std::byte*>(memory),
                                                               cudaFreeHost);
  };
  const auto out_block = pinned(), back_block = pinned();
  std::byte* const out = out_block.get();
  std::byte* const back = back_block.get();
  const int none = 0;
  std::memset(out, 0x5A, mib);
  const DeviceScope scope(device);
  cudaStream_t stream = nullptr;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  {
    const DeviceBuffer there(device, mib, stream);
    require(cudaMemcpyAsync(there.data(), out, mib, cudaMemcpyDefault, stream));
    require(cudaMemsetAsync(there.data(), 0x33, 16, stream));
    require(cudaMemcpyAsync(back, there.data(), mib, cudaMemcpyDefault, stream));
    require(cudaMemsetAsync(out, 0x77, 16, stream));
    require(cudaStreamSynchronize(stream));
    CHECK(device_of(there.data()) == device && locate(there.data()) == device);
  }
  require(cudaStreamDestroy(stream));
  CHECK(back[15] == std::byte{0x33} && back[16] == std::byte{0x5A});
  CHECK(back[mib - 1] == std::byte{0x5A});
  CHECK(out[15] == std::byte{0x77} && out[16] == std::byte{0x5A});
  CHECK(device_of(out) == -1 && locate(out) == -1);
  CHECK(device_of(&none) == -1 && device_of(nullptr) == -1);
}

/// Buffers and workspaces belong to their device and to its default stream, whatever is current
/// when they are taken, used and given back.
void another_device_is_current(int device, int other) {
  const DeviceScope scope(other);
  void* workspace = nullptr;
  {
    DeviceBuffer buffer(device, mib, nullptr);
    CHECK(device_of(buffer.data()) == device && current() == other);
    const Workspace work(device, mib, nullptr);
    workspace = work.data();
    CHECK(device_of(workspace) == device && current() == other);
  }
  CHECK(current() == other);
  CHECK(Workspace(device, mib, nullptr).data() == workspace);
  {
    const DeviceScope inner(device);
    CHECK(current() == device);
    const DeviceScope innermost(other);
    CHECK(current() == other);
  }
  CHECK(current() == other);
  CHECK(cudaGetLastError() == cudaSuccess);
}

void slots_are_portable(int device) {
  const DeviceScope scope(device);
  std::vector<PinnedSlot> slots(600);  // more than a page of them
  const std::vector<std::byte> zero(PinnedSlot::bytes), mark(PinnedSlot::bytes, std::byte{0x11});
  const auto holds = [](const PinnedSlot& slot, const std::vector<std::byte>& bytes) {
    return std::memcmp(slot.data(), bytes.data(), PinnedSlot::bytes) == 0;
  };
  for (const PinnedSlot& slot : slots) {
    CHECK(holds(slot, zero));
    require(cudaMemsetAsync(slot.data(), 0x11, PinnedSlot::bytes, nullptr));
  }
  require(cudaStreamSynchronize(nullptr));
  for (const PinnedSlot& slot : slots) CHECK(holds(slot, mark));
}

}  // namespace

int main() {
  int devices = 0;
  require(cudaGetDeviceCount(&devices));
  for (int device = 0; device < devices; ++device) {
    devices_copy_to_and_from(device);
    slots_are_portable(device);
    for (int other = 0; other < devices; ++other) another_device_is_current(device, other);
  }
  // On a thread that has made no device current.
  std::thread([&] { another_device_is_current(devices - 1, 0); }).join();
  std::printf("%d failures on %d GPUs\n", check::failures, devices);
  return check::failures != 0;
}
