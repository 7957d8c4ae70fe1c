// The codec of a message, or why it has none.

#include <algorithm>
#include <string>
#include <utility>

#include "message/message.hpp"
#include "message/messaging.hpp"
#include "trace/message.hpp"

namespace mpress::engine {
namespace {

using trace::Reason;

/// Says, when costs first matter, which of them are assumed.
void say_assumptions(Messaging& messaging, policy::Medium medium) {
  const auto index = static_cast<std::size_t>(medium);
  const std::string& assumed = messaging.lacking_costs[index];
  if (messaging.rank != 0 || assumed.empty()) return;
  if (!messaging.are_lacking_costs_said[index].exchange(true)) trace::say(assumed);
}

Reason reason_of(Messaging& messaging, const policy::Subject& subject) {
  if (!messaging.config.force) say_assumptions(messaging, policy::medium(subject.path));
  switch (messaging.policy.judge(subject)) {
    case policy::Verdict::compress: return Reason::none;
    case policy::Verdict::unknown: return Reason::unknown;
    case policy::Verdict::link: return Reason::policy;
    case policy::Verdict::ratio: break;
  }
  return Reason::ratio;
}

/// From here on the threshold does not depend on what is learned of links, which holds for messages
/// in memory of the host.
std::size_t settled_bytes(const Messaging& messaging, const Message& message) {
  const std::size_t usual = messaging.config.threshold;
  return message.device == gpu::host ? std::max(usual, policy::LinkModel::least_timed_bytes)
                                     : usual;
}

/// Bytes from which on a message like this one is long enough, as far as its size is on the same
/// side of settled_bytes().
std::size_t threshold_of(const Messaging& messaging, const Message& message) {
  std::size_t usual = messaging.config.threshold;
  if (message.bytes < settled_bytes(messaging, message) && !messaging.config.is_threshold_set &&
      message.peer != trace::any_peer) {
    usual = messaging.policy.least_bytes(messaging.endpoints.peer_of(message.peer), usual);
  }
  return message.comm.hints.threshold(usual);
}

}  // namespace

bool is_short(const Messaging& messaging, const Message& message) {
  return message.bytes < wire::min_frame_bytes || message.bytes < threshold_of(messaging, message);
}

SizeRange alike_in_shortness(const Messaging& messaging, const Message& message) {
  const std::size_t long_enough = std::max(wire::min_frame_bytes, threshold_of(messaging, message));
  const std::size_t settled = settled_bytes(messaging, message);
  if (message.bytes >= long_enough) {
    return {message.bytes < settled ? long_enough : std::max(long_enough, settled), SIZE_MAX};
  }
  return {0, (message.bytes < settled ? std::min(long_enough, settled) : long_enough) - 1};
}

bool is_switched_off(const Config& config, const Message& message) {
  const Family family = message.call.family;
  return config.is_disabled(family) ||
         (is_of_messages(family) && config.is_disabled(Family::p2p)) ||
         (config.is_disabled(Family::derived) && !message.layout.contiguous);
}

policy::Subject glance_at_subject(const Messaging& messaging, const Message& message, Codec codec) {
  const policy::Path path =
      messaging.endpoints.of(message.peer).path(message.device, message.bytes);
  std::shared_ptr<policy::Ratios> unowned(std::shared_ptr<policy::Ratios>(),
                                          message.comm.ratios.get());
  // Elements of what is added up come and go in one way; payloads are encoded and decoded between.
  const Driven driven = message.call.driven;
  const link::Attributes* const link = policy::own_link(path);
  const bool is_in_window = link && link->is_through_host &&
                            (driven.of_host > messaging.endpoints.ranks_here() ||
                             (driven && is_of_reductions(message.call.family)));
  return {path,
          codec,
          *message.layout.element,
          message.bytes,
          std::move(unowned),
          is_in_window ? policy::raw_share_in_windows : 1,
          message.call.raw_by_kernels};
}

policy::Subject subject_of(const Messaging& messaging, const Message& message, Codec codec) {
  policy::Subject subject = glance_at_subject(messaging, message, codec);
  subject.ratios = message.comm.ratios;
  return subject;
}

Spec wanted_spec(const Messaging& messaging, const Message& message) {
  const Coding* const coding = message.call.coding;
  const std::optional<Spec>& asked = message.asked;
  Spec wanted = coding  ? coding->spec
                : asked ? *asked
                        : message.comm.hints.codec(messaging.config.spec);
  if (wanted.codec == Codec::automatic) wanted.codec = Codec::mpc;
  return wanted;
}

Reason reason_before_costs(const Messaging& messaging, const Message& message) {
  const Coding* const coding = message.call.coding;
  const bool is_decided = coding && coding->is_decided;
  if (is_decided ? message.bytes < wire::min_frame_bytes : is_short(messaging, message)) {
    return Reason::threshold;
  }
  if (!message.layout.element) return Reason::type;
  if (message.peer == trace::any_peer) return Reason::communicator;
  if (messaging.has_sessions.load(std::memory_order_relaxed)) return Reason::sessions;
  if (is_switched_off(messaging.config, message)) return Reason::disabled;
  if (wanted_spec(messaging, message).codec == Codec::none) {
    return coding ? coding->why_raw : Reason::disabled;
  }
  if (message.device == gpu::host && !message.is_readable) return Reason::device;
  const auto* const first =
      static_cast<const std::byte*>(message.buffer) + message.layout.first_byte;
  return is_aligned(first, message.device, *message.layout.element) ? Reason::none
                                                                    : Reason::unaligned;
}

Status check_spec(const Messaging& messaging, const Message& message, const Spec& spec) {
  std::string error;
  if (validate_spec(spec, *message.layout.element, error)) return Status::ok;
  trace::say("rank " + std::to_string(messaging.rank) + ": " + error);
  return Status::unfit_spec;
}

Choice choose(Messaging& messaging, const Message& message, bool may_time) {
  const Spec none = no_codec();
  if (message.call.raw_for) return {none, *message.call.raw_for};
  Reason reason = reason_before_costs(messaging, message);
  if (reason != Reason::none) return {none, reason};
  const Spec wanted = wanted_spec(messaging, message);
  if (message.call.coding && message.call.coding->is_decided) return {wanted, reason};
  policy::Subject subject = glance_at_subject(messaging, message, wanted.codec);
  if (is_linked(subject.path)) messaging.linked_rate.adopt_published(messaging, message.device);
  reason = reason_of(messaging, subject);
  // No rank looks for frames, as none would gain by them.
  if (reason == Reason::none && !messaging.watches_receives()) reason = Reason::policy;
  const bool encodes = reason == Reason::none;
  const policy::Timing timing =
      may_time ? messaging.timings.judge(subject, encodes) : policy::Timing::none;
  const bool is_timed = timing == policy::Timing::raw;
  if (is_timed || encodes) subject.ratios = message.comm.ratios;
  if (is_timed) return {none, Reason::timed, timing, subject};
  if (encodes) return {wanted, reason, timing, subject};
  return {none, reason};
}

}  // namespace mpress::engine
