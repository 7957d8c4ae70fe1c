// The protocols by which a message travels, in the order in which they are tried: each is faster
// than those behind it, wherever it can carry the message.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "message/message.hpp"
#include "trace/record.hpp"

namespace mpress::engine {

struct Messaging;

struct Protocol {
  std::string_view name;

  /// Why it cannot carry such a message, as reports print it; none: it can, as far as can be said
  /// before anything is reserved. Looks neither at the elements nor at what is under way.
  trace::Fallback (*probe)(const Messaging& messaging, const Message& message,
                           const Choice& choice);

  /// Prepares the message. Its status; or nothing, and all is as
  /// before, where it cannot be had right now: slots or memory are short, its receiver has not
  /// opened them yet, or what is encoded did not become smaller.
  std::optional<Status> (*start)(Messaging& messaging, const Message& message, const Choice& choice,
                                 Elements& elements, Prepared& prepared);
};

/// The last one carries every message.
std::span<const Protocol> protocols();

/// The first that can carry a message that goes as `choice` says.
const Protocol& protocol_for(const Messaging& messaging, const Message& message,
                             const Choice& choice);

}  // namespace mpress::engine
