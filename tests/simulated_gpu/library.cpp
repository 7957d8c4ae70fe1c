// libmpress_simulated_gpu.so: what mpress loads, and what test programs call.

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "memory.hpp"
#include "queue.hpp"
#include "simulated_gpu.h"
#include "streams.hpp"

namespace mpress::simulated {
namespace {

std::atomic<std::size_t>& queues() {  ///< opened
  static OfMembers<std::atomic<std::size_t>> opened;
  return opened.own();
}

struct Simulation final : gpu::Gpu {
  std::uint32_t version() const override { return gpu::interface_version; }
  const char* name() const override { return "simulated GPU"; }
  int locate(const void* pointer) const override { return Memory::instance().locate(pointer); }

  std::unique_ptr<gpu::Queue> open_queue(int device, gpu::Priority priority) override {
    if (device < 0 || device >= devices) fault("there is no device %d", device);
    if (is_failed(device)) return nullptr;
    ++queues();
    return std::make_unique<Queue>(device, priority);
  }

  std::shared_ptr<const gpu::PriorWork> work_of(int device, void* stream) override {
    return simulated::work_of(device, stream);
  }
  std::shared_ptr<const gpu::PriorWork> default_work(int device) override {
    return simulated::default_work(device);
  }

  void* allocate(gpu::Place place, int device, std::size_t bytes) override {
    if (device < 0 || device >= devices) fault("there is no device %d", device);
    if (is_failed(device)) return nullptr;
    return Memory::instance().take(number(place, device), bytes, false);
  }

  void release(gpu::Place place, int device, void* memory) override {
    Memory::instance().give(number(place, device), memory, false);
  }

  /// Each member has devices of its own, unless all shall be one.
  std::uint64_t identity(int device) override {
    const char* const shared = std::getenv("SIMULATED_GPU_SHARED");
    if (shared && std::strcmp(shared, "0") != 0) return 1;
    const auto member = static_cast<std::uint64_t>(own_member());
    return (static_cast<std::uint64_t>(getpid()) << 16) + (member << 8) +
           static_cast<std::uint64_t>(device);
  }

  std::size_t memory_bytes(int) override { return device_bytes; }

  double speed(int) override { return 100; }

  bool find_block(int device, const void* pointer, gpu::Block& block) override {
    if (Memory::instance().locate(pointer) != device)
      fault("%p is not on device %d", pointer, device);
    return Memory::instance().find_block(pointer, block);
  }

  bool share(int device, void* memory, gpu::MemoryHandle& handle) override {
    if (is_failed(device)) return false;
    return Memory::instance().share(device, memory, handle);
  }

  void* open(int device, const gpu::MemoryHandle& handle) override {
    return is_failed(device) ? nullptr : Memory::instance().open(device, handle);
  }

  void close(int device, void* memory) override { Memory::instance().close(device, memory); }

  bool map(int device, void* memory, std::size_t bytes) override {
    const char* const maps = std::getenv("SIMULATED_GPU_MAP");
    if (is_failed(device) || (maps && std::strcmp(maps, "0") == 0)) return false;
    Memory::instance().map(memory, bytes);
    return true;
  }

  void unmap(int, void* memory) override { Memory::instance().unmap(memory); }

 private:
  static int number(gpu::Place place, int device) {
    return place == gpu::Place::pinned ? gpu::host : device;
  }
};

/// Behind everything else that runs at the process's end.
[[gnu::destructor]] void at_exit() {
  for (int member = 0; member <= last_member(); ++member) {
    be_member(member);
    finish_default_streams();
    Memory::instance().check_end();
  }
}

int device_of(const void* memory) {
  const int device = Memory::instance().locate(memory);
  if (device == gpu::host) fault("%p is no memory of a device", memory);
  return device;
}

/// On the default stream. An MPI that takes memory of devices knows no streams of these: for it
/// that is waited for.
void write_by_default(void* memory, std::vector<std::byte> data) {
  static const bool is_open = std::getenv("SIMULATED_GPU_OPEN") != nullptr;
  default_stream(device_of(memory)).copy_for_program(memory, std::move(data));
  if (is_open) finish_default_streams();
}

}  // namespace
}  // namespace mpress::simulated

using namespace mpress::simulated;

extern "C" {

mpress::gpu::Gpu* mpress_gpu() {
  static auto* const immortal = new Simulation;
  return immortal;
}

int sim_count() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible && *visible == '\0' ? 0 : sim_devices;
}

void* sim_malloc(int device, size_t bytes) { return Memory::instance().take(device, bytes, true); }

void* sim_malloc_pool(int device, size_t bytes) {
  return Memory::instance().take(device, bytes, true, true);
}

void sim_free(void* memory) {
  if (!memory) return;
  finish_default_streams();
  Memory::instance().give(device_of(memory), memory, true);
}

void sim_copy_in(void* device_memory, const void* host_memory, size_t bytes) {
  const auto* const data = static_cast<const std::byte*>(host_memory);
  write_by_default(device_memory, {data, data + bytes});
}

void sim_set(void* device_memory, int byte, size_t bytes) {
  write_by_default(device_memory, std::vector(bytes, static_cast<std::byte>(byte)));
}

void sim_copy_within(void* to, const void* from, size_t bytes) {
  default_stream(device_of(to)).copy_for_program(to, from, bytes);
}

void sim_copy_out(void* host_memory, const void* device_memory, size_t bytes) {
  Memory& memory = Memory::instance();
  default_stream(device_of(device_memory));
  finish_default_streams();
  memory.check(device_of(device_memory), device_memory, bytes);
  memory.check_program({static_cast<const std::byte*>(device_memory), bytes, false});
  if (bytes > 0) std::memcpy(host_memory, memory.view(device_memory), bytes);
}

void sim_synchronize(void) { finish_default_streams(); }

void sim_set_limit(int device, size_t bytes) { Memory::instance().set_limit(device, bytes); }

void sim_set_failing(int device, unsigned pieces) { set_failing(device, pieces); }

void sim_hold_decoders(const int* flag) { hold_decoders(flag); }

size_t sim_encode_calls() { return encode_calls(); }
size_t sim_range_calls() { return range_calls(); }
size_t sim_queues() { return queues(); }

size_t sim_held(int device) { return Memory::instance().held(device); }

}  // extern "C"
