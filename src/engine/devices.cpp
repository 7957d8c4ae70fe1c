#include "engine/devices.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>

#include "engine/asked.hpp"
#include "engine/job/job.hpp"
#include "engine/request/followed_stream.hpp"
#include "gpu/loaded_gpu.hpp"
#include "link/host_memory.hpp"
#include "mpi/objects/type_runs.hpp"
#include "trace/message.hpp"

namespace mpress::engine {
namespace {

/// Idle memory of a device that is kept: what a long message takes, coming and going, or it would
/// be allocated, and opened by others, anew for each.
constexpr std::size_t least_kept_bytes = 512u << 20;
constexpr std::size_t kept_share = 64;  ///< of all that the device has
constexpr std::size_t keep_pinned_bytes = 1u << 30;

/// Runs one by one, by way of no memory of the device: there is none to spare.
template <typename Copy>
int copy_runs(Job& job, gpu::Queue& queue, const gpu::Runs& runs, const Copy& copy) {
  gpu::Event last = 0;
  runs.for_each([&](const gpu::Run& run) { last = copy(run); });
  return job.code_of(job.devices.wait(job, queue, last));
}

/// CUDA's own number; the front asks for more, unless the user has chosen (front/connections.cpp).
constexpr int usual_connections = 8;

/// Says where the user's choice may let messages wait for the program's streams.
void tell_of_few_connections() {
  const char* chosen = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  const int connections = chosen ? std::atoi(chosen) : 0;
  if (connections < 1 || connections >= usual_connections || active_job()->rank != 0) return;
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

Devices::Devices() = default;
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
  static const bool has_gpu = [] {
    const bool found = gpu::gpu() != nullptr;
    if (found) {
      tell_of_few_connections();
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
  return buffer ? std::move(buffer) : active_job()->pool.take(bytes);
}

Status Devices::wait(const Job& job, gpu::Queue& queue, gpu::Event event, gpu::Outcome* outcome) {
  gpu::State state = gpu::State::pending;
  await_device(queue.device(), [&] {
    state = queue.query(event, outcome);
    return state != gpu::State::pending;
  });
  return state == gpu::State::done ? Status::ok : refused(job, queue.device());
}

Status refused(const Job& job, int device) {
  trace::say("rank " + std::to_string(job.rank) + ": device " + std::to_string(device) +
             " refuses to work; an earlier operation of the program's may have failed on it");
  return Status::device_failed;
}

Status short_of_memory(Job& job, int device) {
  if (device == gpu::host) return Status::no_memory;
  const QueueLease queue = job.devices.queue(device);
  const memory::Buffer trial = job.devices.take_pinned(device, 2);
  if (!queue) return refused(job, device);
  if (!trial) return Status::no_memory;
  // A device that refuses does so when it is given anything.
  const gpu::Event event = queue->copy(trial.data(), trial.data() + 1, 1);
  const bool refuses = queue->query(event) == gpu::State::failed;
  queue->drain();
  return refuses ? refused(job, device) : Status::no_memory;
}

namespace {

/// Once, of the first memory of a device that the program sends from or receives to.
void tell_nothing_is_shared(const Job& job) {
  static std::atomic<bool> has_told{false};
  if (has_told.exchange(true)) return;
  trace::say("messages to and from GPUs of rank " + std::to_string(job.rank) +
             " go through MPI: " + link::HostMemory::none_left);
}

}  // namespace

Location locate(Job& job, const void* buffer, const mpi::TypeInfo& type) {
  const std::ptrdiff_t first = type.contiguous ? 0 : type.first_byte;
  return locate(job, static_cast<const std::byte*>(buffer) + first);
}

Location locate(Job& job, const void* byte) {
  const int device = gpu::locate(byte);
  if (device == gpu::host) return {};
  if (!job.devices.usable()) return {gpu::host, false};
  job.devices.meet(device);
  if (job.has_nothing_to_share) tell_nothing_is_shared(job);
  return {device, false};
}

Devices::Behind default_work(int device) {
  const Asked* const asked = Asking::innermost();
  if (device == gpu::host || (asked && asked->stream) || FollowedStream::is_any()) return nullptr;
  return gpu::gpu()->default_work(device);
}

int await(Job& job, int device, const Devices::Behind& behind) {
  if (!behind) return MPI_SUCCESS;
  gpu::State state = gpu::State::pending;
  job.progress.wait_until([&] {
    state = behind->query();
    return state != gpu::State::pending;
  });
  return state == gpu::State::done ? MPI_SUCCESS : job.code_of(refused(job, device));
}

bool packs_for_mpi(const Job& job, const mpi::TypeInfo& type) {
  return !job.gpu_aware || !type.contiguous;
}

int pack_from_device(Job& job, int device, const void* buffer, MPI_Count count,
                     const mpi::TypeInfo& type, void* packed, std::size_t bytes,
                     const Devices::Behind& behind) {
  if (bytes == 0) return MPI_SUCCESS;
  // The program's own work may last: others proceed meanwhile, as they do not during the copy.
  if (const int code = await(job, device, behind); code != MPI_SUCCESS) return code;
  const QueueLease queue = job.devices.queue(device);
  if (!queue) return job.code_of(refused(job, device));
  if (type.contiguous)
    return job.code_of(job.devices.wait(job, *queue, queue->copy(packed, buffer, bytes)));
  const auto runs = mpi::runs_of(type, count);
  const memory::Buffer aside = job.devices.take(device, bytes);
  if (!aside) {
    const auto* from = static_cast<const std::byte*>(buffer);
    auto* to = static_cast<std::byte*>(packed);
    return copy_runs(job, *queue, *runs, [&](const gpu::Run& run) {
      return queue->copy(std::exchange(to, to + run.bytes), from + run.offset, run.bytes);
    });
  }
  queue->gather(aside.data(), buffer, *runs);
  return job.code_of(job.devices.wait(job, *queue, queue->copy(packed, aside.data(), bytes)));
}

int unpack_to_device(Job& job, int device, const void* packed, std::size_t bytes, void* buffer,
                     MPI_Count count, const mpi::TypeInfo& type, const Devices::Behind& behind) {
  if (bytes == 0) return MPI_SUCCESS;
  const QueueLease queue = job.devices.queue(device, behind);
  if (!queue) return job.code_of(refused(job, device));
  if (type.contiguous) {
    return job.code_of(job.devices.wait(job, *queue, queue->copy(buffer, packed, bytes)));
  }
  const auto runs = mpi::runs_of(type, count, bytes);
  memory::Buffer aside;
  if (gpu::locate(packed) != device) {
    aside = job.devices.take(device, bytes);
    if (!aside) {
      const auto* from = static_cast<const std::byte*>(packed);
      auto* to = static_cast<std::byte*>(buffer);
      return copy_runs(job, *queue, *runs, [&](const gpu::Run& run) {
        return queue->copy(to + run.offset, std::exchange(from, from + run.bytes), run.bytes);
      });
    }
    queue->copy(aside.data(), packed, bytes);
    packed = aside.data();
  }
  return job.code_of(job.devices.wait(job, *queue, queue->scatter(buffer, packed, *runs)));
}

}  // namespace mpress::engine
