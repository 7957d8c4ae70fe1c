#include "memory/buffer_pool.hpp"

#include <bit>
#include <cstdlib>
#include <utility>

namespace mpress::memory {
namespace {

constexpr std::size_t alignment = 64;
constexpr std::size_t smallest = 4096;

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
    for (std::byte* data : list) source_.release(data);
  }
}

Buffer BufferPool::take(std::size_t bytes) {
  if (bytes > (SIZE_MAX >> 1)) return {};
  const std::size_t capacity = std::bit_ceil(bytes < smallest ? smallest : bytes);
  Buffer buffer;
  {
    std::lock_guard lock(mutex_);
    auto& list = idle_[std::countr_zero(capacity)];
    if (!list.empty()) {
      buffer.data_ = list.back();
      list.pop_back();
      idle_bytes_ -= capacity;
    }
  }
  if (!buffer.data_) {
    buffer.data_ = static_cast<std::byte*>(source_.allocate(capacity));
    if (!buffer.data_) return {};
  }
  buffer.pool_ = this;
  buffer.capacity_ = capacity;
  return buffer;
}

void BufferPool::give(std::byte* data, std::size_t capacity) {
  {
    std::lock_guard lock(mutex_);
    if (idle_bytes_ + capacity <= keep_bytes_) {
      idle_[std::countr_zero(capacity)].push_back(data);
      idle_bytes_ += capacity;
      return;
    }
  }
  source_.release(data);
}

}  // namespace mpress::memory
