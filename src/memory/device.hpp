// Memory of GPUs: device memory in stream order, words in pinned memory that devices write to,
// workspaces.
// For callers that know that the process uses CUDA.
//
// Functions that can fail throw CudaError.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <stdexcept>
#include <string>

namespace mpress::memory {

/// A CUDA call that failed: what was tried, and CUDA's reason.
class CudaError : public std::runtime_error {
 public:
  CudaError(const std::string& what, cudaError_t code)
      : std::runtime_error(what + ": " + cudaGetErrorString(code)), code(code) {}
  cudaError_t code;
};

void check(cudaError_t code, const char* what);

/// Makes a device current for the calling thread while it lives. What was current before is so
/// again afterwards, also where that was nothing yet.
class DeviceScope {
 public:
  explicit DeviceScope(int device);
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;
  ~DeviceScope();

 private:
  bool changed_ = false;
};

/// A block of device memory from the device's pool. It is there for work enqueued on `stream` after
/// taking it, and goes back to the pool, in the order of that stream, when it is destroyed: the
/// stream must live until then, unless forget_stream() was called. Taking and giving cost less than
/// a microsecond once the pool has grown. Movable.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(int device, std::size_t bytes, cudaStream_t stream);
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  ~DeviceBuffer() { reset(); }

  void reset();
  /// Nobody keeps the stream alive: reset() and destruction wait until the whole device is idle.
  void forget_stream() { knows_stream_ = false; }
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  int device() const { return device_; }
  cudaStream_t stream() const { return stream_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  int device_ = 0;
  cudaStream_t stream_ = nullptr;
  bool knows_stream_ = true;
};

/// 16 bytes, aligned so, of host memory that any device can write to and the host can poll; all
/// zero when taken. Movable.
class PinnedSlot {
 public:
  static constexpr std::size_t bytes = 16;

  PinnedSlot();
  PinnedSlot(PinnedSlot&& other) noexcept;
  PinnedSlot(const PinnedSlot&) = delete;
  PinnedSlot& operator=(const PinnedSlot&) = delete;
  ~PinnedSlot();

  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

/// A workspace for calls on `stream`: zero-filled, and kept for later calls when it is destroyed.
/// Destroyed by an exception, it waits for the stream first, and is filled with zeros again: a call
/// that failed may have done a part of its work.
class Workspace {
 public:
  Workspace(int device, std::size_t bytes, cudaStream_t stream);
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  ~Workspace();

  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  std::size_t capacity_ = 0;
  int device_ = 0;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t last_use_ = nullptr;
  int exceptions_;  ///< under way when it was taken
};

}  // namespace mpress::memory
