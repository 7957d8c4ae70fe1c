#include "core/staging.hpp"

#include <cstring>
#include <utility>

#include "core/runtime.hpp"
#include "gpu/loaded_gpu.hpp"

namespace mpress::engine {
namespace {

/// Runs one by one, by way of no memory of the device: there is none to spare.
template <typename Copy>
Status copy_runs(Runtime& runtime, gpu::Queue& queue, const gpu::Runs& runs, const Copy& copy) {
  gpu::Event last = 0;
  runs.for_each([&](const gpu::Run& run) { last = copy(run); });
  return runtime.devices.wait(queue, last);
}

}  // namespace

Location locate(Runtime& runtime, const void* buffer, const Layout& layout) {
  const std::ptrdiff_t first = layout.contiguous ? 0 : layout.first_byte;
  return locate(runtime, static_cast<const std::byte*>(buffer) + first);
}

Status copy_bytes(Runtime& runtime, void* to, const Location& to_place, const void* from,
                  const Location& from_place, std::size_t bytes, CopyUnderWay* under_way) {
  if (from_place.device == gpu::host && to_place.device == gpu::host) {
    if (!from_place.is_readable || !to_place.is_readable) return Status::device_failed;
    std::memcpy(to, from, bytes);
    return Status::ok;
  }
  const int device = from_place.device == gpu::host ? to_place.device : from_place.device;
  QueueLease queue = runtime.devices.queue(device);
  if (!queue) return refused(runtime, device);
  const gpu::Event event = from_place.device == to_place.device ? queue->copy_near(to, from, bytes)
                                                                : queue->copy(to, from, bytes);
  if (!under_way) return runtime.devices.wait(*queue, event);
  under_way->event = event;
  under_way->queue = std::move(queue);
  return Status::ok;
}

Status pack_from_device(Runtime& runtime, int device, const void* buffer, std::int64_t count,
                        const Layout& layout, void* packed, std::size_t bytes,
                        const Devices::Behind& behind) {
  if (bytes == 0) return Status::ok;
  // The program's own work may last: others proceed meanwhile, as they do not during the copy.
  if (const Status status = await(runtime, device, behind); !status.is_ok()) return status;
  const QueueLease queue = runtime.devices.queue(device);
  if (!queue) return refused(runtime, device);
  if (layout.contiguous) return runtime.devices.wait(*queue, queue->copy(packed, buffer, bytes));
  const auto runs = layout.runs_of(count);
  const memory::Buffer aside = runtime.devices.take(device, bytes);
  if (!aside) {
    const auto* from = static_cast<const std::byte*>(buffer);
    auto* to = static_cast<std::byte*>(packed);
    return copy_runs(runtime, *queue, *runs, [&](const gpu::Run& run) {
      return queue->copy(std::exchange(to, to + run.bytes), from + run.offset, run.bytes);
    });
  }
  queue->gather(aside.data(), buffer, *runs);
  return runtime.devices.wait(*queue, queue->copy(packed, aside.data(), bytes));
}

Status unpack_to_device(Runtime& runtime, int device, const void* packed, std::size_t bytes,
                        void* buffer, std::int64_t count, const Layout& layout,
                        const Devices::Behind& behind) {
  if (bytes == 0) return Status::ok;
  const QueueLease queue = runtime.devices.queue(device, behind);
  if (!queue) return refused(runtime, device);
  if (layout.contiguous) {
    return runtime.devices.wait(*queue, queue->copy(buffer, packed, bytes));
  }
  const auto runs = layout.runs_of(count, bytes);
  memory::Buffer aside;
  if (gpu::locate(packed) != device) {
    aside = runtime.devices.take(device, bytes);
    if (!aside) {
      const auto* from = static_cast<const std::byte*>(packed);
      auto* to = static_cast<std::byte*>(buffer);
      return copy_runs(runtime, *queue, *runs, [&](const gpu::Run& run) {
        return queue->copy(to + run.offset, std::exchange(from, from + run.bytes), run.bytes);
      });
    }
    queue->copy(aside.data(), packed, bytes);
    packed = aside.data();
  }
  return runtime.devices.wait(*queue, queue->scatter(buffer, packed, *runs));
}

}  // namespace mpress::engine
