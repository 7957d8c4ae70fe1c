// What a message is encoded with, or why it is not.

#include "engine/job.hpp"
#include "engine/send_message.hpp"

namespace mpress::engine {
namespace {

using trace::Reason;

/// Devices cannot load elements from other addresses.
bool is_aligned(const Message& message) {
  if (message.device == gpu::host) return true;
  const auto address = reinterpret_cast<std::uintptr_t>(message.arguments.buffer) +
                       static_cast<std::uintptr_t>(message.type.first_byte);
  return address % element_size(*message.type.element) == 0;
}

Spec no_codec() {
  Spec none;
  none.codec = Codec::none;
  return none;
}

}  // namespace

bool is_short(const Job& job, const Message& message) {
  const std::size_t threshold = message.comm.hints.threshold(job.config.threshold);
  return message.bytes < threshold || message.bytes < wire::min_frame_bytes;
}

bool is_switched_off(const Config& config, const Message& message) {
  switch (message.op) {
    case trace::Op::start:
      if (config.is_disabled(Family::persistent)) return true;
      break;
    case trace::Op::sendrecv:
    case trace::Op::isendrecv:
    case trace::Op::sendrecv_replace:
    case trace::Op::isendrecv_replace:
      if (config.is_disabled(Family::sendrecv)) return true;
      break;
    default: break;
  }
  return config.is_disabled(Family::p2p) ||
         (config.is_disabled(Family::derived) && !message.type.contiguous);
}

policy::Policy& policy_of(Job& job, const Message& message) {
  return message.device == gpu::host ? job.policy : job.device_policy;
}

Spec choose(Job& job, const Message& message, Reason& reason) {
  const Spec none = no_codec();
  Spec wanted = message.comm.hints.codec(job.config.spec);
  if (wanted.codec == Codec::automatic) wanted.codec = Codec::mpc;
  if (is_short(job, message)) {
    reason = Reason::threshold;
  } else if (!message.type.element) {
    reason = Reason::type;
  } else if (message.peer == trace::any_peer) {
    reason = Reason::communicator;
  } else if (job.has_sessions.load(std::memory_order_relaxed)) {
    reason = Reason::sessions;
  } else if (wanted.codec == Codec::none || is_switched_off(job.config, message)) {
    reason = Reason::disabled;
  } else if (message.device == gpu::host && !is_readable(message.arguments.buffer, message.type)) {
    reason = Reason::device;
  } else if (!is_aligned(message)) {
    reason = Reason::unaligned;
  } else if (!policy_of(job, message).worth_it(wanted.codec, message.bytes)) {
    reason = Reason::policy;
  } else {
    return wanted;
  }
  return none;
}

}  // namespace mpress::engine
