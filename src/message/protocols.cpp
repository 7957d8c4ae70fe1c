#include "message/protocols.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/staging.hpp"
#include "message/messaging.hpp"

namespace mpress::engine {
namespace {

using trace::Fallback;

/// Has mpress what is not encoded, rather than an MPI that takes memory of devices? The link of
/// mpress's own that is tried first answers for both.
bool has_raw(const Messaging& messaging, const Message& message) {
  if (!messaging.gpu_aware || messaging.raw_by_link) return true;
  const link::Kind nearest = messaging.links.nearest(message.peer);
  if (nearest == link::Kind::channel) return false;
  return messaging.policy.links().has_raw({policy::Place::device, policy::peer_by(nearest)},
                                          message.bytes);
}

bool encodes(const Choice& choice) { return choice.spec.codec != Codec::none; }

/// Why a link between devices cannot carry a message.
Fallback probe_link(const Messaging& messaging, const Message& message,
                    const link::Attributes& about, bool is_encoded) {
  if (message.device == gpu::host || message.peer == messaging.rank ||
      !may_be_announced(messaging, message)) {
    return Fallback::unsuited;
  }
  if (!about.crosses_hosts && !messaging.endpoints.of(message.peer).is_on_this_host()) {
    return Fallback::other_host;
  }
  if (message.bytes < messaging.links.least_bytes_between_devices) return Fallback::too_short;
  const link::DeviceLink& link = messaging.links.of(about);
  if (!link.is_open()) return Fallback::closed;
  if (!link.may_reach(message.peer)) return Fallback::unreachable;
  return is_encoded || has_raw(messaging, message) ? Fallback::none : Fallback::left_to_mpi;
}

/// MPI gets `bytes` bytes of this memory.
void hand_over(memory::Buffer memory, std::size_t bytes, Prepared& prepared) {
  prepared.memory = std::move(memory);
  prepared.data = prepared.memory.data();
  prepared.bytes = bytes;
}

std::optional<Status> announce(const Message& message, const Choice& choice,
                               std::unique_ptr<ChunkSend> chunks, Prepared& prepared) {
  if (!chunks) return std::nullopt;
  if (encodes(choice)) {
    prepared.loss =
        Loss::of(choice.spec, chunks->header().spec, message.device, prepared.loss.measured);
  }
  if (!chunks->announce()) return Status::no_memory;
  prepared.chunks = std::move(chunks);
  return Status::ok;
}

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

/// MPI gets a header, and the receiver the data from where the program has it. An MPI that takes
/// memory of devices opens it for others, too, and a process does so once: UCX, for one, ends the
/// process where mpress has a block open already.
namespace zero_copy_get {

constexpr const link::Attributes& of_peer = *link::attributes_of(link::Kind::peer);

Fallback probe(const Messaging& messaging, const Message& message, const Choice& choice) {
  const bool may_offer = !messaging.gpu_aware && !messaging.config.zero_copy_disabled;
  const bool stays = message.call.buffer_stays && message.layout.contiguous;
  if (encodes(choice) || !stays || !may_offer) return Fallback::unsuited;
  return probe_link(messaging, message, of_peer, false);
}

/// The program's own work may still be writing there, and a reader would not wait for that: so
/// meanwhile elements are copied to slots behind it. Where those have no room the call waits.
std::optional<Status> start(Messaging& messaging, const Message& message, const Choice& choice,
                            Elements& elements, Prepared& prepared) {
  Devices::Behind& behind = elements.region.behind;
  if (behind && is_pending(*behind)) {
    auto copied = send_by_link(messaging, message, choice.spec, elements, of_peer);
    if (copied) return announce(message, choice, std::move(copied), prepared);
    if (const Status status = await(messaging, message.device, behind); !status.is_ok()) {
      return status;
    }
  }
  behind = nullptr;
  return announce(message, choice, send_by_offer(messaging, message, elements), prepared);
}

}  // namespace zero_copy_get

/// MPI gets a header, and the data goes by slots of a link between devices, chunk by chunk.
namespace pipelined {

template <const link::Attributes& about>
Fallback probe(const Messaging& messaging, const Message& message, const Choice& choice) {
  return probe_link(messaging, message, about, encodes(choice));
}

template <const link::Attributes& about>
std::optional<Status> start(Messaging& messaging, const Message& message, const Choice& choice,
                            Elements& elements, Prepared& prepared) {
  return announce(message, choice, send_by_link(messaging, message, choice.spec, elements, about),
                  prepared);
}

}  // namespace pipelined

/// The same by messages of MPI's: so that copies overlap with the wire, also where nothing is
/// encoded; and a payload in memory of a device goes apart from its header, which the receiver's
/// host reads.
namespace pipelined_by_channel {

Fallback probe(const Messaging& messaging, const Message& message, const Choice& choice) {
  if (choice.timing == policy::Timing::raw) return Fallback::none;
  if (!encodes(choice)) {
    if (message.device == gpu::host || !may_be_announced(messaging, message))
      return Fallback::unsuited;
    if (messaging.gpu_aware) return Fallback::left_to_mpi;
  }
  const bool is_apart = is_cut(messaging, message) || leaves_device(messaging, message);
  return is_apart ? Fallback::none : Fallback::too_short;
}

std::optional<Status> start(Messaging& messaging, const Message& message, const Choice& choice,
                            Elements& elements, Prepared& prepared) {
  return announce(message, choice, send_by_channel(messaging, message, choice, elements), prepared);
}

}  // namespace pipelined_by_channel

/// MPI gets a frame with all of the data.
namespace eager {

Fallback probe(const Messaging&, const Message&, const Choice& choice) {
  return encodes(choice) ? Fallback::none : Fallback::unsuited;
}

std::optional<Status> start(Messaging& messaging, const Message& message, const Choice& choice,
                            Elements& elements, Prepared& prepared) {
  return prepare_eager(messaging, message, choice.spec, elements, prepared);
}

}  // namespace eager

/// MPI gets the elements, where the program has them, or packed in host memory, or in a device's
/// where MPI takes that.
namespace raw {

Fallback probe(const Messaging&, const Message&, const Choice&) { return Fallback::none; }

/// Memory that MPI takes, for the whole message.
Status take_memory(Messaging& messaging, const Message& message, Prepared& prepared) {
  hand_over(messaging.devices.take_pinned(message.device, message.bytes), message.bytes, prepared);
  if (prepared.memory) return Status::ok;
  return short_of_memory(messaging, message.device);
}

std::optional<Status> start(Messaging& messaging, const Message& message, const Choice&,
                            Elements& elements, Prepared& prepared) {
  if (message.device == gpu::host || !packs_for_mpi(messaging, message.layout)) return Status::ok;
  if (elements.packed && messaging.hands_devices_to_mpi()) {
    hand_over(std::move(elements.packed), message.bytes, prepared);
    return Status::ok;
  }
  if (const Status status = take_memory(messaging, message, prepared); !status.is_ok()) {
    return status;
  }
  const QueueLease queue = messaging.devices.queue(elements.region);
  if (!queue) return refused(messaging, message.device);
  return messaging.devices.wait(
      *queue, queue->copy(prepared.memory.data(), elements.region.data, message.bytes));
}

/// A message whose elements cannot be had: it has none, or memory for them is short.
Status start_packed(Messaging& messaging, const Message& message, bool is_short_of_memory,
                    Prepared& prepared) {
  const bool is_taken = !packs_for_mpi(messaging, message.layout) && !is_short_of_memory;
  if (message.device == gpu::host || is_taken) return Status::ok;
  if (const Status status = take_memory(messaging, message, prepared); !status.is_ok()) {
    return status;
  }
  return pack_from_device(messaging, message.device, message.buffer, message.count, message.layout,
                          prepared.memory.data(), message.bytes, message.behind);
}

}  // namespace raw

template <std::size_t... at>
constexpr auto make_table(std::index_sequence<at...>) {
  using link::between_devices;
  return std::array{
      Protocol{"zero-copy get", zero_copy_get::probe, zero_copy_get::start},
      Protocol{between_devices[at].protocol, pipelined::probe<between_devices[at]>,
               pipelined::start<between_devices[at]>}...,
      Protocol{"pipelined, MPI", pipelined_by_channel::probe, pipelined_by_channel::start},
      Protocol{"eager", eager::probe, eager::start},
      Protocol{"raw", raw::probe, raw::start},
  };
}

constexpr std::array table = make_table(std::make_index_sequence<link::count_between_devices>());

}  // namespace

std::span<const Protocol> protocols() { return table; }

const Protocol& protocol_for(const Messaging& messaging, const Message& message,
                             const Choice& choice) {
  return *std::ranges::find_if(table, [&](const Protocol& one) {
    return one.probe(messaging, message, choice) == Fallback::none;
  });
}

bool packs_for_mpi(const Messaging& messaging, const Layout& layout) {
  return !messaging.gpu_aware || !layout.contiguous;
}

bool may_be_announced(const Messaging& messaging, const Message& message) {
  return message.peer != trace::any_peer &&
         !messaging.has_sessions.load(std::memory_order_relaxed) &&
         !is_switched_off(messaging.config, message) && message.bytes % 4 == 0 &&
         (message.layout.element || (message.layout.contiguous && message.layout.size > 0 &&
                                     wire::min_frame_bytes % message.layout.size == 0));
}

bool takes_raw(const Messaging& messaging, const Message& message) {
  if (!messaging.gpu_aware) return true;
  return message.bytes >= messaging.links.least_bytes_between_devices &&
         messaging.links.nearest(message.peer) != link::Kind::channel &&
         has_raw(messaging, message);
}

Fallback fallback_of(const Messaging& messaging, const Message& message, trace::Way way,
                     Fallback of_peer, bool is_encoded) {
  if (way == trace::Way::peer) return of_peer;
  // Of the last link that there is, if there is one.
  Fallback why_not = Fallback::closed;
  bool is_tried = false, may_be_had = false;
  for (const link::Attributes& about : link::between_devices) {
    // Links that were to be tried first cannot have a message that went by this one.
    if (way == link::way_by(about.kind)) return is_tried ? Fallback::unreachable : Fallback::none;
    is_tried |= messaging.links.of(about).is_open();
    const Fallback by_this = probe_link(messaging, message, about, is_encoded);
    may_be_had |= by_this == Fallback::none;
    const bool is_better = why_not == Fallback::unreachable && by_this != Fallback::closed;
    if (why_not == Fallback::closed || is_better) why_not = by_this;
  }
  if (may_be_had) {
    const bool is_open = messaging.links.nearest_open(message.peer) != link::Kind::channel;
    return is_open ? Fallback::no_room : Fallback::not_open;
  }
  return why_not;
}

Status prepare(Messaging& messaging, const Message& message, const Choice& choice,
               Prepared& prepared) {
  const bool is_encoded = encodes(choice);
  if (is_encoded) {
    if (const Status status = check_spec(messaging, message, choice.spec); !status.is_ok()) {
      return status;
    }
  }
  const bool has_elements = is_encoded || message.bytes % sizeof(float) == 0;
  std::optional<Elements> elements;
  if (has_elements) {
    const Status status = gather_elements(messaging, message, elements);
    if (!status.is_ok()) return status;
    if (!elements && is_encoded) prepared.reason = trace::Reason::memory;
  }
  if (!elements) return raw::start_packed(messaging, message, has_elements, prepared);
  if (measures_error(messaging, choice.spec)) {
    const Status status =
        measure_error(messaging, choice.spec, elements->region, prepared.loss.measured);
    if (!status.is_ok()) return status;
  }
  for (const Protocol& protocol : table) {
    if (protocol.probe(messaging, message, choice) != Fallback::none) continue;
    const auto status = protocol.start(messaging, message, choice, *elements, prepared);
    if (status) return *status;
  }
  return Status::no_memory;  // the last one always starts
}

}  // namespace mpress::engine
