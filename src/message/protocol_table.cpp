#include "message/protocol_table.hpp"

#include <vector>

#include "core/json_number.hpp"
#include "core/size_ranges.hpp"
#include "gpu/loaded_gpu.hpp"
#include "message/messaging.hpp"
#include "message/protocols.hpp"

namespace mpress::engine {
namespace {

constexpr std::size_t least = sizeof(float);
constexpr std::size_t most = 1u << 30;

/// The objects that messages of MPI_Send's refer to.
struct Sender {
  Messaging& messaging;
  const Layout& type;
  const CommSettings& comm;
  int peer;
  int device;
};

/// What is decided about messages of one size.
struct Prediction {
  const Protocol* protocol;
  Choice choice;
  policy::Peer path;
  policy::Policy::Forecast forecast;
  std::vector<trace::Fallback> refusals;  ///< of the protocols before that one

  bool is_like(const Prediction& other) const {
    return protocol == other.protocol && choice.spec.codec == other.choice.spec.codec &&
           choice.reason == other.choice.reason && path == other.path;
  }
};

trace::Reason reason_of(policy::Verdict verdict) {
  switch (verdict) {
    case policy::Verdict::compress: return trace::Reason::none;
    case policy::Verdict::unknown: return trace::Reason::unknown;
    case policy::Verdict::link: return trace::Reason::policy;
    case policy::Verdict::ratio: break;
  }
  return trace::Reason::ratio;
}

Prediction decide(const Sender& from, std::size_t bytes) {
  Messaging& messaging = from.messaging;
  // An address that every element may have, and at which nobody looks.
  const auto* const buffer = reinterpret_cast<const void*>(std::uintptr_t{1} << 12);
  const SendCall call{trace::Op::send, Family::p2p, true};
  const Message message{call,      buffer,      static_cast<std::int64_t>(bytes / sizeof(float)),
                        from.type, from.comm,   from.peer,
                        bytes,     from.device, from.device == gpu::host};
  Prediction found{nullptr, {no_codec(), reason_before_costs(messaging, message)}, {}, {}, {}};
  const Spec wanted = wanted_spec(messaging, message);
  if (wanted.codec != Codec::none) {
    const policy::Subject subject = glance_at_subject(messaging, message, wanted.codec);
    found.path = subject.path.peer;
    found.forecast = messaging.policy.forecast(subject);
  }
  if (found.choice.reason == trace::Reason::none) {
    found.choice.reason = reason_of(found.forecast.verdict);
    if (!messaging.watches_receives() && found.choice.reason == trace::Reason::none) {
      found.choice.reason = trace::Reason::policy;
    }
    if (found.choice.reason == trace::Reason::none) found.choice.spec = wanted;
  }
  found.protocol = &protocol_for(messaging, message, found.choice);
  for (const Protocol& protocol : protocols()) {
    if (&protocol == found.protocol) break;
    found.refusals.push_back(protocol.probe(messaging, message, found.choice));
  }
  return found;
}

using Range = TableRange<Prediction>;

std::string text_of(const Sender& from, const Range& range, std::size_t end) {
  const Prediction& first = range.decision;
  const Prediction last = decide(from, end);
  std::string refusals;
  for (std::size_t i = 0; i < first.refusals.size(); ++i) {
    if (i > 0) refusals += ", ";
    refusals += "{\"protocol\": \"" + std::string(protocols()[i].name) +
                "\", \"why_not\": " + std::to_string(static_cast<int>(first.refusals[i])) + "}";
  }
  const auto seconds = [](const policy::Policy::Forecast& forecast) {
    return "[" + json_number(forecast.raw_seconds) + ", " +
           json_number(forecast.compressed_seconds) + "]";
  };
  return "{\"first\": " + std::to_string(range.first) + ", \"last\": " + std::to_string(end) +
         ", \"protocol\": \"" + std::string(first.protocol->name) +
         "\", \"codec\": " + std::to_string(static_cast<int>(first.choice.spec.codec)) +
         ", \"reason\": " + std::to_string(static_cast<int>(first.choice.reason)) +
         ", \"refusals\": [" + refusals + "], \"seconds_at_first\": " + seconds(first.forecast) +
         ", \"seconds_at_last\": " + seconds(last.forecast) +
         ", \"wire_per_raw\": " + json_number(last.forecast.wire_per_raw) + "}";
}

/// A rank of this host, or of another; -1: there is none.
int peer_of_kind(const Messaging& messaging, policy::Peer kind) {
  for (int rank = 0; rank < messaging.size; ++rank) {
    if (rank != messaging.rank && messaging.endpoints.peer_of(rank) == kind) return rank;
  }
  return -1;
}

}  // namespace

std::string protocol_table(Messaging& messaging, const Layout& floats, const CommSettings& world) {
  std::string text = "\"rank\": " + std::to_string(messaging.rank) +
                     ", \"ranks\": " + std::to_string(messaging.size) + ", \"codec\": \"" +
                     to_string(messaging.config.spec) +
                     "\", \"forced\": " + (messaging.config.force ? "true" : "false") +
                     ", \"tables\": [";
  const char* between = "";
  for (const policy::Peer kind : {policy::Peer::same_host, policy::Peer::other_host}) {
    const int peer = peer_of_kind(messaging, kind);
    for (const int device : {gpu::host, 0}) {
      const bool is_used = device == gpu::host || (gpu::in_use() && messaging.devices.usable());
      if (peer < 0 || !is_used) continue;
      const Sender from{messaging, floats, world, peer, device};
      text += std::string(between) + "\n {\"peer\": " + std::to_string(peer) + ", \"on\": \"" +
              policy::peer_names[static_cast<std::size_t>(kind)] + "\", \"memory\": \"" +
              (device == gpu::host ? "host" : "device") + "\", \"ranges\": [";
      const std::vector<Range> ranges = size_ranges(
          least, most, sizeof(float), [&](std::size_t bytes) { return decide(from, bytes); });
      for (std::size_t i = 0; i < ranges.size(); ++i) {
        const std::size_t end = i + 1 < ranges.size() ? ranges[i + 1].first - sizeof(float) : most;
        text += (i > 0 ? ",\n  " : "\n  ") + text_of(from, ranges[i], end);
      }
      text += "]}";
      between = ",";
    }
  }
  return text + "]";
}

}  // namespace mpress::engine
