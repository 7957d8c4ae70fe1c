// Messages in device memory become frames, or come to the host as they are.

#include "codec/codec.hpp"
#include "engine/job.hpp"
#include "engine/p2p/send_message.hpp"
#include "mpi/type_runs.hpp"

namespace mpress::engine {
namespace {

using trace::Reason;

/// Encodes on the device into one frame in pinned memory; none where it would not be smaller.
int encode_on_device(Job& job, gpu::Queue& queue, const Spec& spec, const Elements& elements,
                     Encoded& encoded) {
  wire::Header header;
  header.type = elements.type;
  header.count = elements.count;
  const memory::Buffer payload = job.devices.take(
      elements.device, codec::max_payload_bytes(spec, elements.type, elements.count));
  encoded.reason = Reason::memory;
  if (!payload) return MPI_SUCCESS;
  header.spec = queue.resolve(spec, elements.type, elements.data, elements.count);
  gpu::Outcome outcome;
  int code = job.devices.wait(
      job, queue,
      queue.encode(header.spec, elements.type, elements.data, elements.count, payload.data()),
      &outcome);
  if (code != MPI_SUCCESS) return code;
  header.payload_bytes = outcome.bytes;
  encoded.reason = Reason::none;
  if (wire::frame_bytes(header.payload_bytes) > header.raw_bytes()) return MPI_SUCCESS;
  encoded.frame = job.devices.take_pinned(elements.device, wire::frame_bytes(outcome.bytes));
  if (!encoded.frame) return MPI_ERR_NO_MEM;
  code = job.devices.wait(
      job, queue,
      queue.copy(encoded.frame.data() + wire::header_bytes, payload.data(), outcome.bytes));
  if (code == MPI_SUCCESS) encoded.bytes = close_frame(job, header, encoded.frame);
  return code;
}

/// May a message that is not encoded be announced by a header?
bool may_be_announced(const Job& job, const Message& message) {
  return message.peer != trace::any_peer && !job.has_sessions.load(std::memory_order_relaxed) &&
         !is_switched_off(job.config, message) && message.bytes % 4 == 0 &&
         (message.type.element || (message.type.contiguous && message.type.size > 0 &&
                                   wire::min_frame_bytes % message.type.size == 0));
}

/// A message of a type with gaps where the device has no room to pack it.
int fetch_without_memory(Job& job, const Message& message, bool encodes, Encoded& encoded) {
  if (encodes) encoded.reason = Reason::memory;
  encoded.frame = job.devices.take_pinned(message.device, message.bytes);
  if (!encoded.frame) return MPI_ERR_NO_MEM;
  return pack_from_device(job, message.device, message.arguments.buffer, message.arguments.count,
                          message.type, encoded.frame.data(), message.bytes);
}

}  // namespace

int fetch(Job& job, const Message& message, const Spec& spec, Encoded& encoded) {
  const std::uint64_t begin = trace::now_ns();
  const bool encodes = spec.codec != Codec::none;
  const ElementType type = message.type.element.value_or(ElementType::f32);
  const QueueLease queue = job.devices.queue(message.device);
  if (!queue) return refused(job, message.device);
  Elements elements{type, message.arguments.buffer, message.bytes / element_size(type),
                    message.device};
  if (!message.type.contiguous) {
    elements.packed = job.devices.take(message.device, message.bytes);
    if (!elements.packed) return fetch_without_memory(job, message, encodes, encoded);
    const auto runs = mpi::runs_of(message.type.layout, message.arguments.count);
    const int code = job.devices.wait(
        job, *queue, queue->gather(elements.packed.data(), message.arguments.buffer, runs));
    if (code != MPI_SUCCESS) return code;
    elements.data = elements.packed.data();
  }
  if (encodes || may_be_announced(job, message)) {
    if (message.bytes >= job.least_peer_bytes) {
      encoded.data = plan_peer_chunks(job, message, spec, elements, message.call.buffer_stays);
    }
    // So that copies overlap with the wire, also where nothing is encoded.
    if (!encoded.data && is_cut(job, message) && (encodes || !job.gpu_aware)) {
      encoded.data = plan_chunks(job, message, spec, elements);
    }
  }
  if (encoded.data) {
    encoded.frame = job.pool.take(wire::min_frame_bytes);
    if (!encoded.frame) return MPI_ERR_NO_MEM;
    encoded.bytes = close_frame(job, encoded.data->header(), encoded.frame);
    return MPI_SUCCESS;
  }
  if (encodes) {
    const int code = encode_on_device(job, *queue, spec, elements, encoded);
    if (code != MPI_SUCCESS) return code;
    encoded.took_ns = trace::now_ns() - begin;
    // What was not tried tells nothing.
    if (encoded.reason == Reason::none) note_encoded(job, message, spec, encoded);
    if (encoded.bytes > 0) return MPI_SUCCESS;
  }
  if (job.gpu_aware && !encodes) return MPI_SUCCESS;
  encoded.frame = job.devices.take_pinned(message.device, message.bytes);
  if (!encoded.frame) return MPI_ERR_NO_MEM;
  return job.devices.wait(job, *queue,
                          queue->copy(encoded.frame.data(), elements.data, message.bytes));
}

}  // namespace mpress::engine
