#include "message/protocol_table.hpp"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <locale>
#include <vector>

#include "codec/float_environment.hpp"
#include "gpu/loaded_gpu.hpp"
#include "message/messaging.hpp"
#include "message/protocols.hpp"
#include "trace/message.hpp"

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
  std::vector<trace::Detour> refusals;  ///< of the protocols before that one

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

/// A run of sizes that go alike.
struct Range {
  std::size_t first;
  Prediction decision;
};

/// The sizes in (low, high] at which messages begin to go otherwise.
void find_changes(const Sender& from, std::size_t low, const Prediction& at_low, std::size_t high,
                  const Prediction& at_high, std::vector<Range>& found) {
  if (at_low.is_like(at_high)) return;
  if (high - low <= sizeof(float)) {
    found.push_back({high, at_high});
    return;
  }
  const std::size_t middle = (low + high) / (2 * sizeof(float)) * sizeof(float);
  const Prediction at_middle = decide(from, middle);
  find_changes(from, low, at_low, middle, at_middle, found);
  find_changes(from, middle, at_middle, high, at_high, found);
}

std::vector<Range> ranges_of(const Sender& from) {
  std::vector<Range> found{{least, decide(from, least)}};
  Prediction at_low = found.front().decision;
  for (std::size_t low = least; low < most; low *= 2) {
    Prediction at_high = decide(from, 2 * low);
    find_changes(from, low, at_low, 2 * low, at_high, found);
    at_low = std::move(at_high);
  }
  return found;
}

/// Whatever the locale: with four digits.
std::string number(double value) {
  char text[32];
  const auto end = compute([&] {
    return std::to_chars(text, text + sizeof text, value, std::chars_format::general, 4).ptr;
  });
  return {text, end};
}

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
    return "[" + number(forecast.raw_seconds) + ", " + number(forecast.compressed_seconds) + "]";
  };
  return "{\"first\": " + std::to_string(range.first) + ", \"last\": " + std::to_string(end) +
         ", \"protocol\": \"" + std::string(first.protocol->name) +
         "\", \"codec\": " + std::to_string(static_cast<int>(first.choice.spec.codec)) +
         ", \"reason\": " + std::to_string(static_cast<int>(first.choice.reason)) +
         ", \"refusals\": [" + refusals + "], \"seconds_at_first\": " + seconds(first.forecast) +
         ", \"seconds_at_last\": " + seconds(last.forecast) +
         ", \"wire_per_raw\": " + number(last.forecast.wire_per_raw) + "}";
}

/// A rank of this host, or of another; -1: there is none.
int peer_of_kind(const Messaging& messaging, policy::Peer kind) {
  for (int rank = 0; rank < messaging.size; ++rank) {
    if (rank != messaging.rank && messaging.endpoints.peer_of(rank) == kind) return rank;
  }
  return -1;
}

}  // namespace

void keep_protocol_table(Messaging& messaging, const Layout& floats, const CommSettings& world) {
  const std::string& path = messaging.config.protocols_file;
  if (messaging.rank != 0) return;
  std::ofstream file(path);
  file.imbue(std::locale::classic());
  file << "{\"rank\": " << messaging.rank << ", \"ranks\": " << messaging.size << ", \"codec\": \""
       << to_string(messaging.config.spec)
       << "\", \"forced\": " << (messaging.config.force ? "true" : "false") << ", \"tables\": [";
  const char* between = "";
  for (const policy::Peer kind : {policy::Peer::same_host, policy::Peer::other_host}) {
    const int peer = peer_of_kind(messaging, kind);
    for (const int device : {gpu::host, 0}) {
      const bool is_used = device == gpu::host || (gpu::in_use() && messaging.devices.usable());
      if (peer < 0 || !is_used) continue;
      const Sender from{messaging, floats, world, peer, device};
      file << between << "\n {\"peer\": " << peer << ", \"on\": \""
           << policy::peer_names[static_cast<std::size_t>(kind)] << "\", \"memory\": \""
           << (device == gpu::host ? "host" : "device") << "\", \"ranges\": [";
      const std::vector<Range> ranges = ranges_of(from);
      for (std::size_t i = 0; i < ranges.size(); ++i) {
        const std::size_t end = i + 1 < ranges.size() ? ranges[i + 1].first - sizeof(float) : most;
        file << (i > 0 ? ",\n  " : "\n  ") << text_of(from, ranges[i], end);
      }
      file << "]}";
      between = ",";
    }
  }
  file << "]}\n";
  if (!file.flush()) {
    trace::say("rank " + std::to_string(messaging.rank) +
               ": MPRESS_PROTOCOLS: no table can be kept in " + path + ": " + std::strerror(errno));
  }
}

}  // namespace mpress::engine
