// How a message travels: decided here alone. The protocols are
//   raw: MPI gets the elements, where the program has them, or packed in host memory;
//   eager: MPI gets a frame with all of the data, for what is encoded and short;
//   pipelined: MPI gets a header, and the data goes by slots of a link, chunk by chunk;
//   offered: MPI gets a header, and the receiver the data from where the program has it.

#include "engine/job.hpp"
#include "engine/p2p/send_message.hpp"

namespace mpress::engine {
namespace {

/// May a message that is not encoded be announced by a header?
bool may_be_announced(const Job& job, const Message& message) {
  return message.peer != trace::any_peer && !job.has_sessions.load(std::memory_order_relaxed) &&
         !is_switched_off(job.config, message) && message.bytes % 4 == 0 &&
         (message.type.element || (message.type.contiguous && message.type.size > 0 &&
                                   wire::min_frame_bytes % message.type.size == 0));
}

/// The first that can be had of those whose data follows a header; null: none.
std::unique_ptr<ChunkSend> plan_chunks(Job& job, const Message& message, const Choice& choice,
                                       Elements& elements) {
  const Spec& spec = choice.spec;
  const bool encodes = spec.codec != Codec::none;
  const bool is_on_device = message.device != gpu::host;
  if (choice.timing == policy::Timing::raw) return send_by_mpi(job, message, choice, elements);
  if (!encodes && !(is_on_device && may_be_announced(job, message))) return nullptr;
  if (is_on_device && message.bytes >= job.least_peer_bytes && (encodes || job.raw_by_peer)) {
    const bool may_be_offered = !encodes && !elements.packed && message.call.buffer_stays;
    auto by_peer = may_be_offered ? send_by_offer(job, message, elements)
                                  : send_by_peer(job, message, spec, elements);
    if (by_peer) return by_peer;
    auto by_host = send_by_host(job, message, spec, elements);
    if (by_host) return by_host;
  }
  if (!encodes && job.gpu_aware) return nullptr;
  // So that copies overlap with the wire, also where nothing is encoded; and a payload in memory of
  // a device goes apart from its header, which the receiver's host reads.
  if (!is_cut(job, message) && !leaves_device(job, message)) return nullptr;
  return send_by_mpi(job, message, choice, elements);
}

/// The elements, packed, in host memory; `elements`: on their device, if they were gathered there.
int prepare_raw(Job& job, const Message& message, const std::optional<Elements>& elements,
                Prepared& prepared) {
  prepared.memory = job.devices.take_pinned(message.device, message.bytes);
  if (!prepared.memory) return MPI_ERR_NO_MEM;
  prepared.data = prepared.memory.data();
  prepared.bytes = message.bytes;
  if (elements) {
    const QueueLease queue = job.devices.queue(message.device);
    if (!queue) return refused(job, message.device);
    return job.devices.wait(
        job, *queue, queue->copy(prepared.memory.data(), elements->region.data, message.bytes));
  }
  return pack_from_device(job, message.device, message.arguments.buffer, message.arguments.count,
                          message.type, prepared.memory.data(), message.bytes);
}

}  // namespace

int announce(Job& job, std::unique_ptr<ChunkSend> chunks, Prepared& prepared) {
  prepared.memory = job.pool.take(wire::min_frame_bytes);
  if (!prepared.memory) return MPI_ERR_NO_MEM;
  wire::close_frame(chunks->header(), job.nonce, prepared.memory.data());
  prepared.data = prepared.memory.data();
  prepared.bytes = wire::min_frame_bytes;
  prepared.is_frame = true;
  prepared.chunks = std::move(chunks);
  return MPI_SUCCESS;
}

int prepare(Job& job, const Message& message, const Choice& choice, Prepared& prepared) {
  const Spec& spec = choice.spec;
  const bool encodes = spec.codec != Codec::none;
  const bool has_elements = encodes || message.bytes % sizeof(float) == 0;
  std::optional<Elements> elements;
  if (has_elements) {
    const int code = gather_elements(job, message, elements);
    if (code != MPI_SUCCESS) return code;
    if (!elements && encodes) prepared.reason = trace::Reason::memory;
  }
  if (elements) {
    auto chunks = plan_chunks(job, message, choice, *elements);
    if (chunks) return announce(job, std::move(chunks), prepared);
    if (encodes) return prepare_eager(job, message, spec, *elements, prepared);
  }
  const bool is_short_of_memory = has_elements && !elements;
  if (message.device == gpu::host || (job.gpu_aware && !is_short_of_memory)) return MPI_SUCCESS;
  return prepare_raw(job, message, elements, prepared);
}

}  // namespace mpress::engine
