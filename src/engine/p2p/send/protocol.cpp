// How a message travels: decided here alone. The protocols are
//   raw: MPI gets the elements, where the program has them, or packed in host memory, or in a
//        device's where MPI takes that;
//   eager: MPI gets a frame with all of the data, for what is encoded and short;
//   pipelined: MPI gets a header, and the data goes by slots of a link, chunk by chunk;
//   offered: MPI gets a header, and the receiver the data from where the program has it.

#include "engine/job/job.hpp"
#include "engine/p2p/send/send_message.hpp"

namespace mpress::engine {
namespace {

/// The link of mpress's own that could carry it.
std::optional<policy::Path> own_path(const Job& job, int peer) {
  if (job.peer_link.may_reach(peer)) return {{policy::Place::device, policy::Peer::linked}};
  if (job.host_link.may_reach(peer)) return {{policy::Place::device, policy::Peer::pinned}};
  return std::nullopt;
}

/// Has mpress what is not encoded on such a path?
bool has_raw(const Job& job, policy::Path path, std::size_t bytes) {
  return !job.gpu_aware || job.raw_by_link || job.policy.has_raw(path, bytes);
}

/// May others open memory of the program's? An MPI that takes memory of devices opens it, too, and
/// a process does so once: UCX, for one, ends the process where mpress has a block open already.
bool may_lend_memory(const Job& job) { return !job.gpu_aware && !job.config.zero_copy_disabled; }

/// Is it so after a moment, too? The driver says that the default stream may hold work whenever a
/// blocking stream of the program's works, and an event of what it holds in truth, mostly nothing,
/// is done some microseconds after the call. Copies of long messages take longer than that.
bool is_pending(const gpu::PriorWork& work) {
  constexpr std::uint64_t moment_ns = 20'000;
  for (const std::uint64_t end = trace::now_ns() + moment_ns;;) {
    if (work.query() != gpu::State::pending) return false;
    if (trace::now_ns() >= end) return true;
  }
}

/// Elements where the program has them, which its own work may still be writing: a reader would not
/// wait for that, so meanwhile they are copied to slots behind it. Where those have no room the
/// call waits.
std::unique_ptr<ChunkSend> send_in_place(Job& job, const Message& message, Elements& elements) {
  Devices::Behind& behind = elements.region.behind;
  if (behind && is_pending(*behind)) {
    auto copied = send_by_peer(job, message, no_codec(), elements);
    if (copied) return copied;
    await(job, message.device, behind);
  }
  behind = nullptr;
  return send_by_offer(job, message, elements);
}

/// The first that can be had of those whose data follows a header; null: none.
std::unique_ptr<ChunkSend> plan_chunks(Job& job, const Message& message, const Choice& choice,
                                       Elements& elements) {
  const Spec& spec = choice.spec;
  const bool encodes = spec.codec != Codec::none;
  const bool is_on_device = message.device != gpu::host;
  if (choice.timing == policy::Timing::raw) return send_by_mpi(job, message, choice, elements);
  if (!encodes && !(is_on_device && may_be_announced(job, message))) return nullptr;
  if (is_on_device && message.bytes >= job.least_peer_bytes &&
      (encodes || takes_raw(job, message))) {
    const bool may_be_offered =
        !encodes && !elements.packed && message.call.buffer_stays && may_lend_memory(job);
    auto by_peer = may_be_offered ? send_in_place(job, message, elements)
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

/// The elements, packed, in memory that MPI takes; `elements`: on their device, if they were
/// gathered there.
int prepare_raw(Job& job, const Message& message, std::optional<Elements>& elements,
                Prepared& prepared) {
  if (elements && elements->packed && job.hands_devices_to_mpi()) {
    prepared.memory = std::move(elements->packed);
    prepared.data = prepared.memory.data();
    prepared.bytes = message.bytes;
    return MPI_SUCCESS;
  }
  prepared.memory = job.devices.take_pinned(message.device, message.bytes);
  if (!prepared.memory) return job.code_of(short_of_memory(job, message.device));
  prepared.data = prepared.memory.data();
  prepared.bytes = message.bytes;
  if (elements) {
    const QueueLease queue = job.devices.queue(elements->region);
    if (!queue) return job.code_of(refused(job, message.device));
    return job.code_of(job.devices.wait(
        *queue, queue->copy(prepared.memory.data(), elements->region.data, message.bytes)));
  }
  return pack_from_device(job, message.device, message.arguments.buffer, message.arguments.count,
                          message.type, prepared.memory.data(), message.bytes, message.behind);
}

}  // namespace

bool may_be_announced(const Job& job, const Message& message) {
  return message.peer != trace::any_peer && !job.has_sessions.load(std::memory_order_relaxed) &&
         !is_switched_off(job.config, message) && message.bytes % 4 == 0 &&
         (message.type.element || (message.type.contiguous && message.type.size > 0 &&
                                   wire::min_frame_bytes % message.type.size == 0));
}

bool takes_raw(const Job& job, const Message& message) {
  if (!job.gpu_aware) return true;
  if (message.bytes < job.least_peer_bytes) return false;
  const std::optional<policy::Path> path = own_path(job, message.peer);
  return path && has_raw(job, *path, message.bytes);
}

trace::Detour detour_of(const Job& job, const Message& message, trace::Way way,
                        trace::Detour of_peer, bool encodes) {
  using trace::Detour;
  if (way == trace::Way::peer) return of_peer;
  // Where the peer link was to be tried first, it cannot have the message.
  if (way == trace::Way::host) {
    return job.peer_link.is_open() ? Detour::unreachable : Detour::none;
  }
  if (message.peer == job.rank || !may_be_announced(job, message)) return Detour::unsuited;
  if (job.peer_hosts.peer(message.peer) == policy::Peer::other_host) return Detour::other_host;
  if (message.bytes < job.least_peer_bytes) return Detour::brief;
  if (!job.peer_link.is_open() && !job.host_link.is_open()) return Detour::closed;
  const std::optional<policy::Path> path = own_path(job, message.peer);
  if (!path) return Detour::unreachable;
  if (!encodes && !has_raw(job, *path, message.bytes)) return Detour::left_to_mpi;
  const bool is_open = job.peer_link.reaches(message.peer) || job.host_link.reaches(message.peer);
  return is_open ? Detour::no_room : Detour::not_open;
}

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
    double& error = prepared.loss.measured;
    if (measures_error(job, spec)) {
      const Status status = measure_error(job, spec, elements->region, error);
      if (!status.is_ok()) return job.code_of(status);
    }
    auto chunks = plan_chunks(job, message, choice, *elements);
    if (chunks && encodes) {
      prepared.loss = Loss::of(spec, chunks->header().spec, message.device, error);
    }
    if (chunks) return announce(job, std::move(chunks), prepared);
    if (encodes) return prepare_eager(job, message, spec, *elements, prepared);
  }
  const bool is_short_of_memory = has_elements && !elements;
  const bool is_taken = !packs_for_mpi(job, message.type) && !is_short_of_memory;
  if (message.device == gpu::host || is_taken) return MPI_SUCCESS;
  return prepare_raw(job, message, elements, prepared);
}

}  // namespace mpress::engine
