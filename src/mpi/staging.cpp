#include "mpi/staging.hpp"

#include <utility>

#include "engine/job/job.hpp"
#include "gpu/loaded_gpu.hpp"
#include "mpi/objects/type_runs.hpp"

namespace mpress::engine {
namespace {

/// Runs one by one, by way of no memory of the device: there is none to spare.
template <typename Copy>
int copy_runs(Job& job, gpu::Queue& queue, const gpu::Runs& runs, const Copy& copy) {
  gpu::Event last = 0;
  runs.for_each([&](const gpu::Run& run) { last = copy(run); });
  return job.code_of(job.devices.wait(queue, last));
}

}  // namespace

Location locate(Job& job, const void* buffer, const mpi::TypeInfo& type) {
  const std::ptrdiff_t first = type.contiguous ? 0 : type.first_byte;
  return locate(job, static_cast<const std::byte*>(buffer) + first);
}

bool packs_for_mpi(const Job& job, const mpi::TypeInfo& type) {
  return !job.gpu_aware || !type.contiguous;
}

int pack_from_device(Job& job, int device, const void* buffer, MPI_Count count,
                     const mpi::TypeInfo& type, void* packed, std::size_t bytes,
                     const Devices::Behind& behind) {
  if (bytes == 0) return MPI_SUCCESS;
  // The program's own work may last: others proceed meanwhile, as they do not during the copy.
  if (const Status status = await(job, device, behind); !status.is_ok()) return job.code_of(status);
  const QueueLease queue = job.devices.queue(device);
  if (!queue) return job.code_of(refused(job, device));
  if (type.contiguous)
    return job.code_of(job.devices.wait(*queue, queue->copy(packed, buffer, bytes)));
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
  return job.code_of(job.devices.wait(*queue, queue->copy(packed, aside.data(), bytes)));
}

int unpack_to_device(Job& job, int device, const void* packed, std::size_t bytes, void* buffer,
                     MPI_Count count, const mpi::TypeInfo& type, const Devices::Behind& behind) {
  if (bytes == 0) return MPI_SUCCESS;
  const QueueLease queue = job.devices.queue(device, behind);
  if (!queue) return job.code_of(refused(job, device));
  if (type.contiguous) {
    return job.code_of(job.devices.wait(*queue, queue->copy(buffer, packed, bytes)));
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
  return job.code_of(job.devices.wait(*queue, queue->scatter(buffer, packed, *runs)));
}

}  // namespace mpress::engine
