#include "engine/p2p/send/protocol_table.hpp"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <locale>
#include <memory>
#include <vector>

#include "codec/float_environment.hpp"
#include "engine/job/job.hpp"
#include "engine/p2p/send/send.hpp"
#include "gpu/loaded_gpu.hpp"
#include "message/protocols.hpp"
#include "trace/message.hpp"

namespace mpress::engine {
namespace {

constexpr std::size_t least = sizeof(float);
constexpr std::size_t most = 1u << 30;

/// The objects that a message of MPI_Send's refers to.
struct Sender {
  Job& job;
  std::shared_ptr<const mpi::TypeInfo> type;
  std::shared_ptr<const mpi::CommInfo> comm;
  int peer;
  int device;
};

/// What is decided about messages of one size.
struct Decision {
  const Protocol* protocol;
  Choice choice;
  policy::Peer path;
  policy::Policy::Forecast forecast;
  std::vector<trace::Detour> refusals;  ///< of the protocols before that one

  bool is_like(const Decision& other) const {
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

Decision decide(const Sender& from, std::size_t bytes) {
  Job& job = from.job;
  // An address that every element may have, and at which nobody looks.
  const auto* const buffer = reinterpret_cast<const void*>(std::uintptr_t{1} << 12);
  const SendArguments arguments{buffer, static_cast<MPI_Count>(bytes / sizeof(float)), MPI_FLOAT,
                                from.peer, MPI_COMM_WORLD};
  const SendCall call{trace::Op::send, Family::p2p, true};
  const Message message = message_of(call, arguments, *from.type, *from.comm, from.peer, bytes,
                                     {from.device, from.device == gpu::host});
  Decision found{nullptr, {no_codec(), reason_before_costs(job, message)}, {}, {}, {}};
  const Spec wanted = wanted_spec(job, message);
  if (wanted.codec != Codec::none) {
    const policy::Subject subject = glance_at_subject(job, message, wanted.codec);
    found.path = subject.path.peer;
    found.forecast = job.policy.forecast(subject);
  }
  if (found.choice.reason == trace::Reason::none) {
    found.choice.reason = reason_of(found.forecast.verdict);
    if (!job.watches_receives() && found.choice.reason == trace::Reason::none) {
      found.choice.reason = trace::Reason::policy;
    }
    if (found.choice.reason == trace::Reason::none) found.choice.spec = wanted;
  }
  found.protocol = &protocol_for(job, message, found.choice);
  for (const Protocol& protocol : protocols()) {
    if (&protocol == found.protocol) break;
    found.refusals.push_back(protocol.probe(job, message, found.choice));
  }
  return found;
}

/// A run of sizes that go alike.
struct Range {
  std::size_t first;
  Decision decision;
};

/// The sizes in (low, high] at which messages begin to go otherwise.
void find_changes(const Sender& from, std::size_t low, const Decision& at_low, std::size_t high,
                  const Decision& at_high, std::vector<Range>& found) {
  if (at_low.is_like(at_high)) return;
  if (high - low <= sizeof(float)) {
    found.push_back({high, at_high});
    return;
  }
  const std::size_t middle = (low + high) / (2 * sizeof(float)) * sizeof(float);
  const Decision at_middle = decide(from, middle);
  find_changes(from, low, at_low, middle, at_middle, found);
  find_changes(from, middle, at_middle, high, at_high, found);
}

std::vector<Range> ranges_of(const Sender& from) {
  std::vector<Range> found{{least, decide(from, least)}};
  Decision at_low = found.front().decision;
  for (std::size_t low = least; low < most; low *= 2) {
    Decision at_high = decide(from, 2 * low);
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
  const Decision& first = range.decision;
  const Decision last = decide(from, end);
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
int peer_of_kind(const Job& job, policy::Peer kind) {
  for (int rank = 0; rank < job.size; ++rank) {
    if (rank != job.rank && job.endpoints.peer_of(rank) == kind) return rank;
  }
  return -1;
}

}  // namespace

void keep_protocol_table(Job& job) {
  const std::string& path = job.config.protocols_file;
  if (job.rank != 0 || path.empty()) return;
  std::ofstream file(path);
  file.imbue(std::locale::classic());
  file << "{\"rank\": " << job.rank << ", \"ranks\": " << job.size << ", \"codec\": \""
       << to_string(job.config.spec) << "\", \"forced\": " << (job.config.force ? "true" : "false")
       << ", \"tables\": [";
  const auto type = mpi::type_info(MPI_FLOAT);
  const auto comm = mpi::comm_info(MPI_COMM_WORLD);
  const char* between = "";
  for (const policy::Peer kind : {policy::Peer::same_host, policy::Peer::other_host}) {
    const int peer = peer_of_kind(job, kind);
    for (const int device : {gpu::host, 0}) {
      const bool is_used = device == gpu::host || (gpu::in_use() && job.devices.usable());
      if (peer < 0 || !is_used || !type || !comm) continue;
      const Sender from{job, type, comm, peer, device};
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
    trace::say("rank " + std::to_string(job.rank) + ": MPRESS_PROTOCOLS: no table can be kept in " +
               path + ": " + std::strerror(errno));
  }
}

}  // namespace mpress::engine
