// What the engine does with GPUs: queues and memory, kept for reuse, and work that is waited for.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/backoff.hpp"
#include "core/region.hpp"
#include "core/status.hpp"
#include "gpu/gpu.hpp"
#include "memory/buffer_pool.hpp"
#include "trace/timeline.hpp"

namespace mpress::engine {

struct Runtime;

/// A queue that goes back to be used again, once it is idle.
class QueueLease {
 public:
  QueueLease() = default;
  QueueLease(QueueLease&&) noexcept = default;
  QueueLease& operator=(QueueLease&& other) noexcept;
  ~QueueLease();

  gpu::Queue* operator->() const { return queue_.get(); }
  gpu::Queue& operator*() const { return *queue_; }
  explicit operator bool() const { return queue_ != nullptr; }

 private:
  friend class Devices;
  class Devices* from_ = nullptr;
  std::unique_ptr<gpu::Queue> queue_;
};

/// Thread-safe.
class Devices {
 public:
  /// Of `runtime`, which outlives it: its rank, and its pool of host memory.
  explicit Devices(Runtime& runtime);
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;
  ~Devices();

  /// The system gives no memory for links between GPUs, which is still to be said.
  std::atomic<bool> shares_nothing{false};

  /// Is a kernel that waits for other ranks left to a device, or may one be? One at a time.
  std::atomic<bool> has_kernel_in_stream{false};

  /// Whether the GPUs can be worked with. Says so once where they cannot: device memory is then
  /// left to MPI.
  bool usable();

  /// Memory of `device` is in use. The first time, its kernels are loaded, for which CUDA waits
  /// until it is idle: later a kernel of the program's may run there that waits for a message.
  void meet(int device) {
    const std::uint64_t bit = std::uint64_t{1} << (device % 64);
    if ((met_.load(std::memory_order_relaxed) & bit) == 0) meet_first(device, bit);
  }

  /// Where MPI takes memory of devices, most calls need not ask where their data lies. So that its
  /// device is met with the first message, calls ask all the same, as long as few have.
  void seek() { looks_left_.store(1000, std::memory_order_relaxed); }
  void look(const void* buffer) {
    if (looks_left_.load(std::memory_order_relaxed) > 0) look_closely(buffer);
  }

  /// An idle queue on `device`; empty where the device refuses.
  QueueLease queue(int device, gpu::Priority priority = gpu::Priority::usual);

  /// The same of one whose work comes behind other work; null: it waits for none.
  using Behind = std::shared_ptr<const gpu::PriorWork>;
  QueueLease queue(int device, const Behind& behind, gpu::Priority priority = gpu::Priority::usual);

  /// For work on these elements.
  QueueLease queue(const Region& region) { return queue(region.device, region.behind); }

  /// Memory of `device`; empty where it ran out. Nothing uses a buffer any more when it goes back.
  memory::Buffer take(int device, std::size_t bytes);

  /// Host memory that devices reach: pinned, or, where that ran out, any.
  memory::Buffer take_pinned(int device, std::size_t bytes);

  /// Waits for a piece of work, which fails where the device refuses to work.
  Status wait(gpu::Queue& queue, gpu::Event event, gpu::Outcome* outcome = nullptr);

 private:
  friend class QueueLease;
  struct Source;
  struct Device;
  Device& at(int device);
  void meet_first(int device, std::uint64_t bit);
  void look_closely(const void* buffer);

  Runtime& runtime_;
  std::atomic<std::uint64_t> met_{0};  ///< a bit for each
  std::atomic<int> looks_left_{0};
  std::mutex mutex_;
  std::vector<std::unique_ptr<Device>> devices_;
};

/// Looks until `look()` says that work of `device` is over, and nothing else meanwhile; the
/// timeline shows the wait.
template <typename Look>
void await_device(int device, Look look) {
  if (look()) return;
  trace::Span span;
  if (trace::timeline.is_on() && device != gpu::host) {
    span = trace::Span(
        {.begin_ns = trace::now_ns(), .device = device, .kind = trace::Kind::wait_for_device});
  }
  for (Backoff backoff; !look();) backoff.pause();
}

/// Says that a device refuses to work, and returns the status of that.
Status refused(const Runtime& runtime, int device);

/// Of a device, or of the host, that gave no memory or no queue: the status of that, or of a device
/// that refuses to work altogether.
Status short_of_memory(Runtime& runtime, int device);

/// Where the data of a buffer lies.
struct Location {
  int device = gpu::host;   ///< gpu::host, too, of devices which mpress cannot work with
  bool is_readable = true;  ///< may the CPU look at it?
};

/// Of one byte.
Location locate(Runtime& runtime, const void* byte);

/// What the program's default streams hold now, which work of mpress's in a buffer of `device` has
/// to come behind: to be asked in the program's call, by its thread. Null: nothing, or the buffer
/// is the host's, or the call follows a stream that it names.
Devices::Behind default_work(int device);

/// Waits until that is done, and lets other operations proceed meanwhile.
Status await(Runtime& runtime, int device, const Devices::Behind& behind);

}  // namespace mpress::engine
