// What the engine does with GPUs: lanes and memory, kept for reuse, and work that is waited for.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/type_info.hpp"
#include "gpu/gpu.hpp"
#include "memory/buffer_pool.hpp"

namespace mpress::engine {

class Job;

/// A lane that goes back to be used again, once it is idle.
class LaneUse {
 public:
  LaneUse() = default;
  LaneUse(LaneUse&&) noexcept = default;
  LaneUse& operator=(LaneUse&& other) noexcept;
  ~LaneUse();

  gpu::Lane* operator->() const { return lane_.get(); }
  gpu::Lane& operator*() const { return *lane_; }
  explicit operator bool() const { return lane_ != nullptr; }

 private:
  friend class Devices;
  class Devices* from_ = nullptr;
  std::unique_ptr<gpu::Lane> lane_;
};

/// Thread-safe.
class Devices {
 public:
  Devices();
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;
  ~Devices();

  /// Whether the GPUs can be worked with. Says so once where they cannot: device memory is then
  /// left to MPI.
  bool usable();

  /// An idle lane on `device`; empty where the device refuses.
  LaneUse lane(int device, gpu::Priority priority = gpu::Priority::usual);

  /// Memory of `device`; empty where it ran out. Nothing uses a buffer any more when it goes back.
  memory::Buffer take(int device, std::size_t bytes);

  /// Host memory that devices reach: pinned, or, where that ran out, any.
  memory::Buffer take_pinned(int device, std::size_t bytes);

  /// Waits for a piece of work: MPI_SUCCESS, or the error code of a device that refuses to work.
  int wait(const Job& job, gpu::Lane& lane, gpu::Ticket ticket, gpu::Outcome* outcome = nullptr);

 private:
  friend class LaneUse;
  struct Source;
  struct Device;
  Device& at(int device);

  std::mutex mutex_;
  std::vector<std::unique_ptr<Device>> devices_;
};

/// Says that a device refuses to work, and returns the error code of that.
int refused(const Job& job, int device);

/// Where the data of a buffer lies.
struct Location {
  int device = gpu::host;   ///< gpu::host, too, of devices which mpress cannot work with
  bool is_readable = true;  ///< may the CPU look at it?
};

Location locate(Job& job, const void* buffer, const TypeInfo& type);

inline int device_of(Job& job, const void* buffer, const TypeInfo& type) {
  return locate(job, buffer, type).device;
}

/// Copies the data of a buffer on a device, packed in the order of its type map, to `packed` in
/// host memory. Returns an MPI error code.
int pack_from_device(Job& job, int device, const void* buffer, MPI_Count count,
                     const TypeInfo& type, void* packed, std::size_t bytes);

/// The opposite, from host memory or from the device's own: the first `bytes` bytes of a buffer's
/// data. What lies between stays untouched.
int unpack_to_device(Job& job, int device, const void* packed, std::size_t bytes, void* buffer,
                     MPI_Count count, const TypeInfo& type);

}  // namespace mpress::engine
