// Host buffers for frames and staging, kept for reuse.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <vector>

namespace mpress::memory {

class BufferPool;

/// A block of host memory, 64-byte aligned, that returns to its pool. Movable.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer() { reset(); }

  void reset();
  std::byte* data() const { return data_; }
  std::size_t capacity() const { return capacity_; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  friend class BufferPool;
  BufferPool* pool_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t capacity_ = 0;
};

/// Size classes are powers of two; at most `keep_bytes` lie idle. Thread-safe.
class BufferPool {
 public:
  explicit BufferPool(std::size_t keep_bytes) : keep_bytes_(keep_bytes) {}
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  ~BufferPool();

  /// At least `bytes` bytes, contents unspecified; an empty Buffer where memory ran out.
  Buffer take(std::size_t bytes);

 private:
  friend class Buffer;
  void give(std::byte* data, std::size_t capacity);

  std::mutex mutex_;
  std::size_t keep_bytes_;
  std::size_t idle_bytes_ = 0;
  std::array<std::vector<std::byte*>, 64> idle_;
};

}  // namespace mpress::memory
