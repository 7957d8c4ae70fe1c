// Pinned host memory, kept for reuse: what devices copy to and from at the full rate of their link,
// and what their kernels write reports to. For callers that know that the process uses CUDA.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <vector>

namespace mpress::memory {

class PinnedPool;

/// A block of pinned host memory, page-aligned, that returns to its pool. Every device can copy to
/// and from it and has it mapped, at the host's address. No device may use it any more when it is
/// reset or destroyed: its owner waits for that. Movable.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  PinnedBuffer(PinnedBuffer&& other) noexcept;
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept;
  ~PinnedBuffer() { reset(); }

  void reset();
  std::byte* data() const { return data_; }
  std::size_t capacity() const { return capacity_; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  friend class PinnedPool;
  PinnedPool* pool_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t capacity_ = 0;
};

/// Grows on demand to `limit_bytes` of pinned memory, in use and idle together; size classes are
/// powers of two from a page on. Pinning stops the device for longer than most messages take, so
/// blocks stay pinned, until the limit is reached and a block of another size is asked for.
/// Thread-safe; outlives its buffers.
class PinnedPool {
 public:
  explicit PinnedPool(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}
  PinnedPool(const PinnedPool&) = delete;
  PinnedPool& operator=(const PinnedPool&) = delete;
  ~PinnedPool();

  /// At least `bytes` bytes, contents unspecified; an empty buffer where the limit is reached or
  /// memory ran out. Throws CudaError where CUDA does not work at all. A new block is made in the
  /// context of the current device.
  PinnedBuffer take(std::size_t bytes);

  /// Pinned by now, in use and idle.
  std::size_t bytes() const;

 private:
  friend class PinnedBuffer;
  void give(std::byte* data, std::size_t capacity);
  bool reserve(std::size_t capacity, std::vector<std::byte*>& surplus);

  mutable std::mutex mutex_;
  std::size_t limit_bytes_;
  std::size_t bytes_ = 0;
  std::size_t idle_bytes_ = 0;
  std::array<std::vector<std::byte*>, 64> idle_;
};

/// The pool of this process, of at most 1 GiB. It is never destroyed.
PinnedPool& pinned_pool();

}  // namespace mpress::memory
