#include "memory/pinned.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include "memory/device.hpp"

namespace mpress::memory {
namespace {

constexpr std::size_t smallest = 4096;
constexpr std::size_t process_limit = std::size_t{1} << 30;

void unpin(std::byte* data) {
  if (cudaFreeHost(data) != cudaSuccess) cudaGetLastError();  // the process is ending
}

}  // namespace

PinnedBuffer::PinnedBuffer(PinnedBuffer&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      capacity_(std::exchange(other.capacity_, 0)) {}

PinnedBuffer& PinnedBuffer::operator=(PinnedBuffer&& other) noexcept {
  if (this != &other) {
    reset();
    pool_ = std::exchange(other.pool_, nullptr);
    data_ = std::exchange(other.data_, nullptr);
    capacity_ = std::exchange(other.capacity_, 0);
  }
  return *this;
}

void PinnedBuffer::reset() {
  if (data_) pool_->give(data_, capacity_);
  pool_ = nullptr;
  data_ = nullptr;
  capacity_ = 0;
}

PinnedPool::~PinnedPool() {
  for (auto& list : idle_) {
    for (std::byte* data : list) unpin(data);
  }
}

PinnedBuffer PinnedPool::take(std::size_t bytes) {
  if (bytes > (SIZE_MAX >> 1)) return {};
  PinnedBuffer buffer;
  buffer.pool_ = this;
  buffer.capacity_ = std::bit_ceil(std::max(bytes, smallest));
  std::vector<std::byte*> surplus;
  {
    std::lock_guard lock(mutex_);
    auto& list = idle_[std::countr_zero(buffer.capacity_)];
    if (!list.empty()) {
      buffer.data_ = list.back();
      list.pop_back();
      idle_bytes_ -= buffer.capacity_;
    } else if (!reserve(buffer.capacity_, surplus)) {
      return {};
    }
  }
  for (std::byte* data : surplus) unpin(data);
  if (!buffer.data_) {
    void* data = nullptr;
    const cudaError_t code =
        cudaHostAlloc(&data, buffer.capacity_, cudaHostAllocMapped | cudaHostAllocPortable);
    if (code != cudaSuccess) {
      std::lock_guard lock(mutex_);
      bytes_ -= buffer.capacity_;
    }
    if (code == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      return {};
    }
    check(code, "pinned memory");
    buffer.data_ = static_cast<std::byte*>(data);
  }
  return buffer;
}

/// Counts a new block in, if the limit allows it; idle blocks that have to go for it, the largest
/// first, are left in `surplus`.
bool PinnedPool::reserve(std::size_t capacity, std::vector<std::byte*>& surplus) {
  if (capacity > limit_bytes_ || bytes_ - idle_bytes_ > limit_bytes_ - capacity) return false;
  for (std::size_t size_class = idle_.size(); bytes_ > limit_bytes_ - capacity;) {
    auto& list = idle_[size_class - 1];
    if (list.empty()) {
      --size_class;
      continue;
    }
    surplus.push_back(list.back());
    list.pop_back();
    bytes_ -= std::size_t{1} << (size_class - 1);
    idle_bytes_ -= std::size_t{1} << (size_class - 1);
  }
  bytes_ += capacity;
  return true;
}

void PinnedPool::give(std::byte* data, std::size_t capacity) {
  std::lock_guard lock(mutex_);
  idle_[std::countr_zero(capacity)].push_back(data);
  idle_bytes_ += capacity;
}

std::size_t PinnedPool::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

PinnedPool& pinned_pool() {
  static auto* const immortal = new PinnedPool(process_limit);
  return *immortal;
}

}  // namespace mpress::memory
