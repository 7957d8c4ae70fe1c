#include "message/decision.hpp"

#include <algorithm>
#include <utility>

#include "core/staging.hpp"
#include "gpu/loaded_gpu.hpp"
#include "link/route.hpp"
#include "message/messaging.hpp"

namespace mpress::engine {
namespace {

using trace::Reason;

/// Does it matter where a message lies? Of those that MPI takes from devices as they are: not where
/// it is too short to be encoded, and MPI may have it; nor where no rank looks for frames.
bool matters_where(const Messaging& messaging, const Message& message, bool is_short) {
  if (message.bytes == 0) return false;
  if (packs_for_mpi(messaging, message.layout)) return true;
  if (is_short) return takes_raw(messaging, message);
  return messaging.watches_receives() || message.call.coding;
}

bool is_left_to_mpi(const Messaging& messaging, const Message& message, const Choice& choice) {
  if (choice.spec.codec != Codec::none || choice.timing == policy::Timing::raw) return false;
  if (message.device == gpu::host) return true;
  return !takes_raw(messaging, message) && !packs_for_mpi(messaging, message.layout);
}

/// Does the policy learn a link by messages that go as this one does?
bool tells_of_link(const Messaging& messaging, const Message& message, Reason reason) {
  return (reason == Reason::policy || reason == Reason::unknown) && message.device == gpu::host &&
         messaging.timings.may_come(message.bytes) &&
         messaging.policy.links().rate(messaging.endpoints.peer_of(message.peer)) != 0;
}

/// Would MPI get a message, which it gets for this reason, also if it lay elsewhere? Asked of MPIs
/// that take memory of devices. The question teaches the policy nothing.
bool is_left_wherever_it_is(const Messaging& messaging, const Message& message, Reason reason) {
  if (takes_raw(messaging, message) || packs_for_mpi(messaging, message.layout)) return false;
  if (reason != Reason::policy && reason != Reason::unknown) return true;  // whatever the place
  if (!messaging.watches_receives()) return true;
  Message there = message;
  constexpr int any_device = 0;
  there.device = message.device == gpu::host ? any_device : gpu::host;
  const Codec wanted = wanted_spec(messaging, message).codec;
  return messaging.policy.is_raw_by_costs(glance_at_subject(messaging, there, wanted));
}

/// How many messages may go to MPI like one that did so for this reason.
std::uint32_t lasting(Reason reason) {
  switch (reason) {
    case Reason::disabled:
    case Reason::type: return CachedDecision::always;
    case Reason::threshold:
    case Reason::policy:
    case Reason::unknown: return CachedDecision::some;
    default: return 0;
  }
}

/// The sizes for which a decision holds: of a short message those that are short, of one that goes
/// raw whatever that costs those that are not; of others their own.
SizeRange range_of(const Messaging& messaging, const Message& message, const Decision& decision) {
  const Reason reason = decision.choice.reason;
  const SizeRange own{message.bytes, message.bytes};
  const bool is_of_all = reason == Reason::disabled || reason == Reason::type;
  if ((reason != Reason::threshold && !is_of_all) || message.bytes == 0) return own;
  // Where the MPI takes both, what was asked about this size is not known of others.
  if (decision.is_placed && gpu::in_use()) return own;
  SizeRange range = alike_in_shortness(messaging, message);
  if (!decision.is_placed && !is_of_all) {  // longer ones may have to be located
    const std::size_t located = messaging.links.least_bytes_between_devices;
    if (message.bytes >= located) return own;
    range.last = std::min(range.last, located - 1);
  }
  return range;
}

}  // namespace

Decision decide(Messaging& messaging, Message& message) {
  const bool too_short = is_short(messaging, message);
  Decision decision{{no_codec(), Reason::threshold}};
  decision.is_placed = matters_where(messaging, message, too_short);
  if (decision.is_placed) {
    const Location location = locate(messaging, message.buffer, message.layout);
    message.device = location.device;
    message.is_readable = location.is_readable;
  }
  if (!too_short || message.device != gpu::host) decision.choice = choose(messaging, message);
  decision.is_plain = is_left_to_mpi(messaging, message, decision.choice);
  return decision;
}

trace::Row& count_plain(Messaging& messaging, const Message& message, Reason reason,
                        std::uint64_t begin_ns, trace::Span& span) {
  Departure departure{Codec::none, reason};
  departure.wire_bytes = message.bytes;
  departure.begin_ns = begin_ns;
  return count(messaging, message, departure, span);
}

void keep_decision(const Messaging& messaging, const CachedDecision::Key& key,
                   const Message& message, const Decision& decision, trace::Row& row,
                   std::uint64_t changes) {
  const Reason reason = decision.choice.reason;
  CachedDecision::Kept kept{.left = lasting(reason),
                            .least = message.count,
                            .most = message.count,
                            .item_bytes = message.layout.size,
                            .row = &row,
                            .is_of_host = decision.is_placed && !gpu::in_use()};
  if (kept.left == 0 || trace::timeline.is_on()) return;
  if (tells_of_link(messaging, message, reason)) return;
  const bool is_certain = !decision.is_placed || kept.is_of_host;
  if (!is_certain && !(messaging.gpu_aware && is_left_wherever_it_is(messaging, message, reason)))
    return;
  if (const std::size_t item = message.layout.size; item > 0) {
    const SizeRange range = range_of(messaging, message, decision);
    kept.least = static_cast<std::int64_t>((range.first + item - 1) / item);
    kept.most = static_cast<std::int64_t>(std::min<std::size_t>(range.last / item, INT64_MAX));
  }
  CachedDecision::keep(key, kept, changes);
}

Status prepare_counted(Messaging& messaging, const Message& message, const Choice& choice,
                       std::uint64_t begin_ns, Prepared& prepared) {
  prepared.reason = choice.reason;
  if (const Status status = prepare(messaging, message, choice, prepared); !status.is_ok()) {
    return status;
  }
  const ChunkSend* const chunks = prepared.chunks.get();
  const bool is_encoded = choice.spec.codec != Codec::none && (chunks || prepared.is_frame);
  if (is_encoded) tell_error(message.call, prepared.loss.measured);
  if (!is_encoded) prepared.loss = {};
  Departure departure{is_encoded ? choice.spec.codec : Codec::none, prepared.reason};
  departure.loss = prepared.loss;
  departure.wire_bytes = prepared.is_frame ? prepared.bytes : message.bytes;
  departure.begin_ns = begin_ns;
  if (chunks) {
    departure.way = chunks->way();
    departure.of_peer = chunks->fallback();
    departure.number = link::Route(chunks->header().route).number;
    departure.wire_bytes = wire::min_frame_bytes;
  }
  trace::Span span;
  prepared.row = &count(messaging, message, departure, span);
  trace::add(prepared.row->encode_ns, prepared.took_ns);
  if (chunks) {
    prepared.chunks->count_in(*prepared.row, std::move(span));
  } else {
    prepared.span = std::move(span);
  }
  if (message.outcome && (chunks || prepared.data)) {
    message.outcome->add(prepared.loss.announced_bound());
  }
  return Status::ok;
}

std::optional<Reason> certain_reason(const Messaging& messaging, const Message& message) {
  const Reason reason = reason_before_costs(messaging, message);
  if (reason != Reason::none) return reason;
  if (message.call.coding && message.call.coding->is_decided) return std::nullopt;
  if (!messaging.watches_receives()) return Reason::policy;
  if (tells_of_link(messaging, message, Reason::policy)) return std::nullopt;
  const Codec wanted = wanted_spec(messaging, message).codec;
  if (!messaging.policy.is_raw_by_costs(glance_at_subject(messaging, message, wanted))) {
    return std::nullopt;
  }
  return Reason::policy;
}

}  // namespace mpress::engine
