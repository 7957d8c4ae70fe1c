#include "memory/buffer_pool.hpp"

#include <bit>
#include <cstdlib>
#include <new>
#include <utility>

namespace mpress::memory {
namespace {

constexpr std::size_t alignment = 64;

struct Heap final : BlockSource {
  void* allocate(std::size_t bytes) override { return std::aligned_alloc(alignment, bytes); }
  void release(void* block) override { std::free(block); }
};

}  // namespace

BlockSource& heap() {
  static constinit Heap source;
  return source;
}

Buffer::Buffer(Buffer&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      capacity_(std::exchange(other.capacity_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    reset();
    pool_ = std::exchange(other.pool_, nullptr);
    data_ = std::exchange(other.data_, nullptr);
    capacity_ = std::exchange(other.capacity_, 0);
  }
  return *this;
}

void Buffer::reset() {
  if (data_) pool_->give(data_, capacity_);
  pool_ = nullptr;
  data_ = nullptr;
  capacity_ = 0;
}

BufferPool::~BufferPool() {
  for (auto& list : idle_) {
    for (const Idle& block : list) source_.release(block.data);
  }
}

/// The smallest class that holds `bytes`.
BufferPool::Class BufferPool::class_of(std::size_t bytes) {
  constexpr std::size_t smallest = std::size_t{1} << smallest_bits;
  if (bytes <= smallest) return {0, smallest};
  const auto power = static_cast<std::size_t>(std::bit_width(bytes - 1)) - 1;  // below it
  const std::size_t step = std::size_t{1} << (power - 3);
  const std::size_t steps = (bytes - (std::size_t{1} << power) + step - 1) / step;
  return {(power - smallest_bits) * 8 + steps, (std::size_t{1} << power) + steps * step};
}

Buffer BufferPool::take(std::size_t bytes) {
  if (bytes > (SIZE_MAX >> 1)) return {};
  const Class wanted = class_of(bytes);
  Buffer buffer;
  {
    std::lock_guard lock(mutex_);
    auto& list = idle_[wanted.index];
    if (!list.empty()) {
      buffer.data_ = list.back().data;
      list.pop_back();
      idle_bytes_ -= wanted.bytes;
    }
  }
  if (!buffer.data_) buffer.data_ = static_cast<std::byte*>(source_.allocate(wanted.bytes));
  if (!buffer.data_ && release_idle()) {
    buffer.data_ = static_cast<std::byte*>(source_.allocate(wanted.bytes));
  }
  if (!buffer.data_) return {};
  buffer.pool_ = this;
  buffer.capacity_ = wanted.bytes;
  return buffer;
}

void BufferPool::give(std::byte* data, std::size_t capacity) {
  // Blocks are released without the lock: a device may take long.
  for (;;) {
    std::byte* surplus = data;
    {
      std::lock_guard lock(mutex_);
      if (capacity <= keep_bytes_ && idle_bytes_ > keep_bytes_ - capacity) {
        surplus = take_oldest();
      } else if (capacity <= keep_bytes_) {
        try {
          idle_[class_of(capacity).index].push_back({data, ++gives_});
          idle_bytes_ += capacity;
          return;
        } catch (const std::bad_alloc&) {
          // Then it is not kept.
        }
      }
    }
    source_.release(surplus);
    if (surplus == data) return;
  }
}

/// Of all idle blocks; there is one. Under the lock.
std::byte* BufferPool::take_oldest() {
  std::size_t oldest = classes;
  for (std::size_t i = 0; i < classes; ++i) {
    if (idle_[i].empty()) continue;
    if (oldest == classes || idle_[i].front().since < idle_[oldest].front().since) oldest = i;
  }
  std::byte* const data = idle_[oldest].front().data;
  idle_[oldest].erase(idle_[oldest].begin());
  idle_bytes_ -= bytes_of(oldest);
  return data;
}

/// Bytes of the blocks of a class.
std::size_t BufferPool::bytes_of(std::size_t index) {
  if (index == 0) return std::size_t{1} << smallest_bits;
  const std::size_t power = smallest_bits + (index - 1) / 8;
  return (std::size_t{1} << power) + ((index - 1) % 8 + 1) * (std::size_t{1} << (power - 3));
}

/// False where there are none.
bool BufferPool::release_idle() {
  bool any = false;
  for (;;) {
    std::byte* data = nullptr;
    {
      std::lock_guard lock(mutex_);
      if (idle_bytes_ == 0) return any;
      data = take_oldest();
    }
    source_.release(data);
    any = true;
  }
}

}  // namespace mpress::memory
