// Conditions and makers that several algorithms share.
#pragma once

#include <memory>

#include "coll/algorithm.hpp"
#include "coll/call_here.hpp"
#include "coll/offered_call.hpp"

namespace mpress::engine {

template <typename Call>
std::unique_ptr<OfferedCall> offer(const CallHere& here) {
  return std::make_unique<Call>(here);
}

/// Why kernels of all members serve no such call; null: they may. Members start persistent calls in
/// any order, so those cannot be agreed on.
inline WhyNot why_no_kernels(const AgreedCall& call) {
  if (!call.team.may_have_kernels) return "MPRESS_LINK=mpi";
  if (call.is_reproducible) return "sums of the same bits in any order of the ranks";
  if (call.form == Form::persistent) return "a persistent call";
  if (call.has_topology) return "a neighbourhood";
  if (call.team.hosts > 1) return "several hosts";
  if (!call.team.has_shared_memory) return "no memory that all members' GPUs reach";
  if (!call.encodes && !call.on_devices) return "no GPU buffers, or too short for links";
  if (call.encodes && (call.codec != Codec::none || !call.team.may_see_devices)) {
    return "its data may be encoded";
  }
  return nullptr;
}

/// Why so many members do not offer a call to each other; null: they do. `most`: members.
inline WhyNot why_no_offer(const AgreedCall& call, std::size_t most) {
  const auto ranks = static_cast<std::size_t>(call.team.ranks);
  if (ranks < 2 || ranks > most) return "too many members";
  if (call.team.most_offered < offer_words) return "members cannot tell each other enough";
  return nullptr;
}

/// Why no messages of mpress's serve all of a call; null: they may.
inline WhyNot why_no_blocks(const AgreedCall& call) {
  if (!call.encodes && !call.on_devices) return why_raw(call.is_long_enough);
  if (call.is_short && !call.encodes) return "too short for messages";
  return nullptr;
}

}  // namespace mpress::engine
