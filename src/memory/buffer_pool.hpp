// Buffers for frames and staging, kept for reuse: of ordinary host memory, or of any other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace mpress::memory {

class BufferPool;

/// Where a pool gets its blocks; thread-safe.
class BlockSource {
 public:
  /// At least 64-byte aligned; null where memory ran out.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* block) = 0;

 protected:
  ~BlockSource() = default;
};

/// malloc's memory.
BlockSource& heap();

/// A block of memory that returns to its pool. Movable.
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

/// Blocks come in size classes, 8 for each power of two: a block is at most 1/8 larger than what is
/// asked for, but for the smallest, 4096 bytes. At most `keep_bytes` lie idle; those that were used
/// last stay. Thread-safe.
class BufferPool {
 public:
  explicit BufferPool(std::size_t keep_bytes, BlockSource& source = heap())
      : source_(source), keep_bytes_(keep_bytes) {}
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;
  ~BufferPool();

  /// At least `bytes` bytes, contents unspecified; an empty Buffer where memory ran out, also
  /// without the idle blocks of this pool.
  Buffer take(std::size_t bytes);

 private:
  friend class Buffer;
  static constexpr std::size_t smallest_bits = 12;
  static constexpr std::size_t classes = (64 - smallest_bits) * 8 + 1;

  struct Class {
    std::size_t index;
    std::size_t bytes;
  };
  struct Idle {
    std::byte* data;
    std::uint64_t since;  ///< by gives_
  };

  static Class class_of(std::size_t bytes);
  static std::size_t bytes_of(std::size_t index);
  void give(std::byte* data, std::size_t capacity);
  std::byte* take_oldest();
  bool release_idle();

  BlockSource& source_;
  std::mutex mutex_;
  std::size_t keep_bytes_;
  std::size_t idle_bytes_ = 0;
  std::uint64_t gives_ = 0;
  /// The oldest of a class first.
  std::array<std::vector<Idle>, classes> idle_;
};

}  // namespace mpress::memory
