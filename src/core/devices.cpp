#include "core/devices.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>

#include "core/asked.hpp"
#include "core/followed_stream.hpp"
#include "core/runtime.hpp"
#include "gpu/loaded_gpu.hpp"
#include "link/host_memory.hpp"
#include "trace/message.hpp"

namespace mpress::engine {
namespace {

/// Idle memory of a device that is kept: what a long message takes, coming and going, or it would
/// be allocated, and opened by others, anew for each.
constexpr std::size_t least_kept_bytes = 512u << 20;
constexpr std::size_t kept_share = 64;  ///< of all that the device has
constexpr std::size_t keep_pinned_bytes = 1u << 30;

/// CUDA's own number; the front asks for more, unless the user has chosen (front/connections.cpp).
constexpr int usual_connections = 8;

/// Says where the user's choice may let messages wait for the program's streams.
void tell_of_few_connections(int rank) {
  const char* chosen = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  const int connections = chosen ? std::atoi(chosen) : 0;
  if (connections < 1 || connections >= usual_connections || rank != 0) return;
  trace::say("CUDA_DEVICE_MAX_CONNECTIONS=" + std::to_string(connections) +
             ": messages in device memory may wait for what the program's streams hold; where that "
             "waits for another rank, as kernels of NCCL's do, neither may get on "
             "(docs/semantics.md)");
}

}  // namespace

struct Devices::Source final : memory::BlockSource {
  Source(gpu::Place place, int device) : place(place), device(device) {}
  void* allocate(std::size_t bytes) override { return gpu::gpu()->allocate(place, device, bytes); }
  void release(void* block) override { gpu::gpu()->release(place, device, block); }
  const gpu::Place place;
  const int device;
};

struct Devices::Device {
  explicit Device(int number)
      : own{gpu::Place::device, number}, pinned{gpu::Place::pinned, number} {}
  Source own;
  Source pinned;
  memory::BufferPool memory{
      std::max(least_kept_bytes, gpu::gpu()->memory_bytes(own.device) / kept_share), own};
  memory::BufferPool staging{keep_pinned_bytes, pinned};
  using Queues = std::vector<std::unique_ptr<gpu::Queue>>;
  std::map<gpu::Priority, Queues> idle;  ///< under Devices::mutex_
};

Devices::Devices(Runtime& runtime) : runtime_(runtime) {}
Devices::~Devices() = default;

QueueLease& QueueLease::operator=(QueueLease&& other) noexcept {
  std::swap(from_, other.from_);
  std::swap(queue_, other.queue_);
  return *this;
}

QueueLease::~QueueLease() {
  if (!queue_) return;
  queue_->drain();
  Devices::Device& device = from_->at(queue_->device());
  std::lock_guard lock(from_->mutex_);
  device.idle[queue_->priority()].push_back(std::move(queue_));
}

bool Devices::usable() {
  static const bool has_gpu = [this] {
    const bool found = gpu::gpu() != nullptr;
    if (found) {
      tell_of_few_connections(runtime_.rank);
    } else {
      trace::say("messages in device memory are left to MPI: " + gpu::why_not());
    }
    return found;
  }();
  return has_gpu;
}

Devices::Device& Devices::at(int device) {
  const auto index = static_cast<std::size_t>(device);
  {
    std::lock_guard lock(mutex_);
    if (index < devices_.size() && devices_[index]) return *devices_[index];
  }
  auto made = std::make_unique<Device>(device);  // which asks the driver
  std::lock_guard lock(mutex_);
  if (index >= devices_.size()) devices_.resize(index + 1);
  if (!devices_[index]) devices_[index] = std::move(made);
  return *devices_[index];
}

void Devices::meet_first(int device, std::uint64_t bit) {
  const QueueLease first = queue(device);
  met_.fetch_or(bit, std::memory_order_relaxed);
}

void Devices::look_closely(const void* buffer) {
  if (!buffer || !gpu::in_use()) return;
  looks_left_.fetch_sub(1, std::memory_order_relaxed);
  const int device = gpu::locate(buffer);
  if (device != gpu::host && usable()) meet(device);
}

QueueLease Devices::queue(int device, gpu::Priority priority) {
  Device& found = at(device);
  QueueLease use;
  use.from_ = this;
  {
    std::lock_guard lock(mutex_);
    auto& idle = found.idle[priority];
    if (!idle.empty()) {
      use.queue_ = std::move(idle.back());
      idle.pop_back();
    }
  }
  if (!use.queue_) use.queue_ = gpu::gpu()->open_queue(device, priority);
  return use;
}

QueueLease Devices::queue(int device, const Behind& behind, gpu::Priority priority) {
  QueueLease use = queue(device, priority);
  if (use && behind) use->wait_for(*behind);
  return use;
}

memory::Buffer Devices::take(int device, std::size_t bytes) {
  return at(device).memory.take(bytes);
}

memory::Buffer Devices::take_pinned(int device, std::size_t bytes) {
  memory::Buffer buffer = at(device).staging.take(bytes);
  return buffer ? std::move(buffer) : runtime_.pool.take(bytes);
}

Status Devices::wait(gpu::Queue& queue, gpu::Event event, gpu::Outcome* outcome) {
  gpu::State state = gpu::State::pending;
  await_device(queue.device(), [&] {
    state = queue.query(event, outcome);
    return state != gpu::State::pending;
  });
  return state == gpu::State::done ? Status::ok : refused(runtime_, queue.device());
}

Status refused(const Runtime& runtime, int device) {
  trace::say("rank " + std::to_string(runtime.rank) + ": device " + std::to_string(device) +
             " refuses to work; an earlier operation of the program's may have failed on it");
  return Status::device_failed;
}

Status short_of_memory(Runtime& runtime, int device) {
  if (device == gpu::host) return Status::no_memory;
  const QueueLease queue = runtime.devices.queue(device);
  const memory::Buffer trial = runtime.devices.take_pinned(device, 2);
  if (!queue) return refused(runtime, device);
  if (!trial) return Status::no_memory;
  // A device that refuses does so when it is given anything.
  const gpu::Event event = queue->copy(trial.data(), trial.data() + 1, 1);
  const bool refuses = queue->query(event) == gpu::State::failed;
  queue->drain();
  return refuses ? refused(runtime, device) : Status::no_memory;
}

namespace {

/// Once, of the first memory of a device that the program sends from or receives to.
void say_nothing_is_shared(const Runtime& runtime) {
  trace::say("messages to and from GPUs of rank " + std::to_string(runtime.rank) +
             " go through MPI: " + link::HostMemory::none_left);
}

}  // namespace

Location locate(Runtime& runtime, const void* byte) {
  const int device = gpu::locate(byte);
  if (device == gpu::host) return {};
  if (!runtime.devices.usable()) return {gpu::host, false};
  runtime.devices.meet(device);
  std::atomic<bool>& is_to_be_said = runtime.devices.shares_nothing;
  if (is_to_be_said.load(std::memory_order_relaxed) && is_to_be_said.exchange(false))
    say_nothing_is_shared(runtime);
  return {device, false};
}

Devices::Behind default_work(int device) {
  const Asked* const asked = Asking::innermost();
  if (device == gpu::host || (asked && asked->stream) || FollowedStream::is_any()) return nullptr;
  return gpu::gpu()->default_work(device);
}

Status await(Runtime& runtime, int device, const Devices::Behind& behind) {
  if (!behind) return Status::ok;
  gpu::State state = gpu::State::pending;
  runtime.progress.wait_until([&] {
    state = behind->query();
    return state != gpu::State::pending;
  });
  return state == gpu::State::done ? Status::ok : refused(runtime, device);
}

}  // namespace mpress::engine
