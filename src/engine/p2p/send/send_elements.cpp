// The elements of a message, without gaps.

#include <cstring>

#include "engine/job/job.hpp"
#include "engine/p2p/send/send_message.hpp"
#include "mpi/calls/counted.hpp"
#include "mpi/objects/relayout.hpp"
#include "mpi/objects/type_runs.hpp"
#include "mpi/staging.hpp"

namespace mpress::engine {

int gather_elements(Job& job, const Message& message, std::optional<Elements>& elements) {
  const ElementType type = message.type.element.value_or(ElementType::f32);
  Elements found{{type, static_cast<const std::byte*>(message.arguments.buffer),
                  message.bytes / element_size(type), message.device, message.behind}};
  if (!message.type.contiguous && message.device == gpu::host) {
    found.packed = pack_elements(job, message.arguments, message.bytes);
    found.region.data = found.packed.data();
    if (!found.packed) return MPI_SUCCESS;
  } else if (!message.type.contiguous) {
    found.packed = job.devices.take(message.device, message.bytes);
    if (!found.packed) return MPI_SUCCESS;
    if (const Status status = await(job, message.device, message.behind); !status.is_ok())
      return job.code_of(status);
    const QueueLease queue = job.devices.queue(message.device);
    if (!queue) return job.code_of(refused(job, message.device));
    const auto runs = mpi::runs_of(message.type, message.arguments.count);
    const Status status = job.devices.wait(
        *queue, queue->gather(found.packed.data(), message.arguments.buffer, *runs));
    if (!status.is_ok()) return job.code_of(status);
    found.region.data = found.packed.data();
    found.region.behind = nullptr;
  }
  elements = std::move(found);
  return MPI_SUCCESS;
}

memory::Buffer pack_elements(Job& job, const SendArguments& arguments, std::size_t bytes) {
  memory::Buffer packed = job.pool.take(bytes);
  const std::shared_ptr<mpi::TypeInfo> type = mpi::type_info(arguments.type);
  if (packed && type && type->contiguous && locate(job, arguments.buffer, *type).is_readable) {
    std::memcpy(packed.data(), arguments.buffer, bytes);
    return packed;
  }
  if (!packed || !type) return {};
  if (locate(job, arguments.buffer, *type).is_readable) {
    const mpi::Items data{const_cast<void*>(arguments.buffer), type.get(), arguments.count};
    const mpi::Items bare{packed.data(), nullptr, static_cast<MPI_Count>(bytes)};
    if (mpi::copy_regular(data, bare)) return packed;
  }
  int code = MPI_SUCCESS;
  if (arguments.buffer == MPI_BOTTOM) {
    const auto count = static_cast<MPI_Count>(bytes / type->packed_unit());
    code = mpi::relayout(arguments.buffer, {arguments.count, arguments.type}, packed.data(),
                         {count, type->packed_type()});
  } else {
    code = mpi::counted::Pack(arguments.buffer, arguments.count, arguments.type, packed.data(),
                              static_cast<MPI_Count>(bytes), arguments.comm);
  }
  if (code != MPI_SUCCESS) return {};
  return packed;
}

}  // namespace mpress::engine
