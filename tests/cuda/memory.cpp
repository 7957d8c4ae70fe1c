// The memory of GPUs: pinned blocks and their limit, devices made current, and who a pointer
// belongs to, on every GPU that there is. Exit status 0 where all held.
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "memory/device.hpp"
#include "memory/kind.hpp"
#include "memory/pinned.hpp"
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

void blocks_come_back() {
  PinnedPool pool(16 * mib);
  PinnedBuffer first = pool.take(3 * mib);
  PinnedBuffer second = pool.take(3 * mib);
  CHECK(first && second && first.data() != second.data());
  CHECK(first.capacity() >= 3 * mib);
  std::byte* const data = first.data();
  const std::size_t bytes = pool.bytes();
  PinnedBuffer moved = std::move(first);
  CHECK(!first && moved.data() == data);
  moved.reset();
  CHECK(pool.take(4 * mib).data() == data);
  CHECK(pool.bytes() == bytes);
}

void the_limit_holds() {
  PinnedPool pool(8 * mib);
  CHECK(!pool.take(9 * mib));
  CHECK(!pool.take(SIZE_MAX));
  std::vector<PinnedBuffer> held;
  for (int i = 0; i < 8; ++i) held.push_back(pool.take(mib));
  CHECK(held.back() && pool.bytes() == 8 * mib);
  CHECK(!pool.take(1));
  held.resize(4);
  CHECK(!pool.take(8 * mib));  // half of it is in use
  CHECK(pool.bytes() == 8 * mib);
  PinnedBuffer large = pool.take(3 * mib);  // in place of idle blocks
  CHECK(large && pool.bytes() == 8 * mib);
  held.clear();
  large.reset();
  CHECK(pool.take(8 * mib) && pool.bytes() == 8 * mib);
}

void threads_share_a_pool() {
  PinnedPool pool(4 * mib);
  std::atomic<int> overlaps{0};
  const auto work = [&](unsigned char mark) {
    for (int i = 0; i < 200; ++i) {
      const std::size_t bytes = std::size_t{4096} << (i + mark) % 8;
      const PinnedBuffer buffer = pool.take(bytes);
      if (!buffer) continue;  // others have it all
      std::memset(buffer.data(), mark, bytes);
      std::this_thread::yield();
      for (std::size_t at : {std::size_t{0}, bytes / 2, bytes - 1}) {
        overlaps += buffer.data()[at] != std::byte{mark};
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned char mark = 1; mark <= 8; ++mark) threads.emplace_back(work, mark);
  for (std::thread& thread : threads) thread.join();
  CHECK(overlaps == 0);
  CHECK(pool.bytes() <= 4 * mib);
}

/// A block that was pinned while device 0 was current serves every device.
void devices_copy_to_and_from(int device) {
  PinnedPool pool(2 * mib);
  const PinnedBuffer out = pool.take(mib), back = pool.take(mib);
  std::memset(out.data(), 0x5A, mib);
  const DeviceScope scope(device);
  cudaStream_t stream = nullptr;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  {
    const DeviceBuffer there(device, mib, stream);
    require(cudaMemcpyAsync(there.data(), out.data(), mib, cudaMemcpyDefault, stream));
    require(cudaMemsetAsync(there.data(), 0x33, 16, stream));
    require(cudaMemcpyAsync(back.data(), there.data(), mib, cudaMemcpyDefault, stream));
    require(cudaMemsetAsync(out.data(), 0x77, 16, stream));
    require(cudaStreamSynchronize(stream));
    CHECK(device_of(there.data()) == device && locate(there.data()) == device);
  }
  require(cudaStreamDestroy(stream));
  CHECK(back.data()[15] == std::byte{0x33} && back.data()[16] == std::byte{0x5A});
  CHECK(back.data()[mib - 1] == std::byte{0x5A});
  CHECK(out.data()[15] == std::byte{0x77} && out.data()[16] == std::byte{0x5A});
  CHECK(device_of(out.data()) == -1 && locate(out.data()) == -1);
  CHECK(device_of(&pool) == -1 && device_of(nullptr) == -1);
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

void reports_are_portable(int device) {
  const DeviceScope scope(device);
  std::vector<PinnedResult> results(600);  // more than a page of them
  for (const PinnedResult& r : results) {
    CHECK(r.get()->sequence == 0 && r.get()->bytes == 0);
    require(cudaMemsetAsync(r.get(), 0x11, sizeof(*r.get()), nullptr));
  }
  for (const PinnedResult& r : results) CHECK(r.wait(nullptr).bytes == 0x1111111111111111);
}

}  // namespace

int main() {
  int devices = 0;
  require(cudaGetDeviceCount(&devices));
  blocks_come_back();
  the_limit_holds();
  threads_share_a_pool();
  for (int device = 0; device < devices; ++device) {
    devices_copy_to_and_from(device);
    reports_are_portable(device);
    for (int other = 0; other < devices; ++other) another_device_is_current(device, other);
  }
  // On a thread that has made no device current.
  std::thread([&] { another_device_is_current(devices - 1, 0); }).join();
  std::printf("%d failures on %d GPUs\n", check::failures, devices);
  return check::failures != 0;
}
