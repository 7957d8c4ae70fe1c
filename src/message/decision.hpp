// Decides about a message of the program's: does MPI get it as it is, or what does mpress make of
// it?
#pragma once

#include <cstdint>
#include <optional>

#include "message/cached_decision.hpp"
#include "message/message.hpp"
#include "trace/record.hpp"

namespace mpress::engine {

struct Messaging;

/// The way of a message, and how it was found.
struct Decision {
  Choice choice;
  bool is_placed = false;  ///< its memory was located
  bool is_plain = false;   ///< MPI gets it as the program has it, without any work of mpress's
};

/// `message` is described as if it lay in memory of the host; it is located, and its place noted in
/// it, where that matters. Calls no MPI, so a quick look at type and communicator is enough.
Decision decide(Messaging& messaging, Message& message);

/// Counts a message that MPI gets as it is, in a call that began at `begin_ns`.
trace::Row& count_plain(Messaging& messaging, const Message& message, trace::Reason reason,
                        std::uint64_t begin_ns, trace::Span& span);

/// Lets a decision that MPI gets a message as it is hold for those like it, where it can. The key
/// has all that its call says of it: it has no codec, reason or outcome of its own. `row`: where
/// the message was counted. `changes`: CachedDecision::now() before the decision.
void keep_decision(const Messaging& messaging, const CachedDecision::Key& key,
                   const Message& message, const Decision& decision, trace::Row& row,
                   std::uint64_t changes);

/// Prepares, and counts, a message that is more than a call of MPI's. Where it fails nothing is
/// counted.
Status prepare_counted(Messaging& messaging, const Message& message, const Choice& choice,
                       std::uint64_t begin_ns, Prepared& prepared);

/// Why a message in memory of the host is sure to go as it is, so that nothing is learned by it;
/// nothing where it is not.
std::optional<trace::Reason> certain_reason(const Messaging& messaging, const Message& message);

}  // namespace mpress::engine
