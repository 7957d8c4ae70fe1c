// Memory of device 0 and of the host's that devices reach, for tests, and queues on it.
#pragma once

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "check.hpp"
#include "gpu/loaded_gpu.hpp"
#include "queues.hpp"

namespace mpress {

inline constexpr int device = 0;

struct Block {
  Block(gpu::Place place, std::size_t bytes)
      : place(place), data(static_cast<std::byte*>(gpu::gpu()->allocate(place, device, bytes))) {
    CHECK(data && reinterpret_cast<std::uintptr_t>(data) % 256 == 0);
  }
  Block(const Block&) = delete;
  ~Block() { gpu::gpu()->release(place, device, data); }

  gpu::Place place;
  std::byte* data;
};

inline std::unique_ptr<Queue> open_queue() {
  std::unique_ptr<Queue> queue = gpu::gpu()->open_queue(device);
  CHECK(queue && queue->device() == device && queue->priority() == gpu::Priority::usual);
  const auto urgent = gpu::gpu()->open_queue(device, gpu::Priority::first);
  CHECK(urgent && urgent->priority() == gpu::Priority::first);
  return queue;
}

/// Memory that devices write to and wait for.
struct Mapped {
  explicit Mapped(std::size_t bytes) : bytes((bytes + 4095) / 4096 * 4096) {
    data = std::aligned_alloc(4096, this->bytes);
    std::memset(data, 0, this->bytes);
    CHECK(gpu::gpu()->map(device, data, this->bytes));
  }
  Mapped(const Mapped&) = delete;
  ~Mapped() {
    gpu::gpu()->unmap(device, data);
    std::free(data);
  }

  std::size_t bytes;
  void* data;
};

inline std::uint32_t load(const std::uint32_t& word) {
  return std::atomic_ref(const_cast<std::uint32_t&>(word)).load(std::memory_order_acquire);
}

}  // namespace mpress
