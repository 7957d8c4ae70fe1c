// A collective call as this member makes it, and its team: what an algorithm makes an operation of.
#pragma once

#include <optional>

#include "coll/blocks/block_list.hpp"
#include "coll/call.hpp"
#include "coll/reduce/reduction.hpp"
#include "coll/team.hpp"
#include "message/message.hpp"
#include "schedule/neighbourhoods/topology.hpp"

namespace mpress::engine {

class LongPairs;

/// Objects that it refers to, and that its lists look up, outlive the operation; itself it does
/// not.
struct CallHere {
  Messaging& messaging;
  Team& team;
  AgreedCall agreed;  ///< as the members know it, as far as they have agreed

  // Of a call that moves data:

  BlockList sent, received;  ///< as CallBlocks has them; of a neighbourhood, by neighbour
  /// The program's buffers; null: there is none, or blocks lie at addresses of their own.
  const void* send_buffer = nullptr;
  const void* receive_buffer = nullptr;
  const schedule::Topology* topology = nullptr;  ///< of a neighbourhood's
  const LongPairs* pairs = nullptr;              ///< set: these alone

  // Of a reduction that mpress serves:

  std::optional<Reduction> reduction = {};
  void* results = nullptr;  ///< where the program has them, as far as this member gets any

  /// The codec of blocks: that of the call, else of its team.
  Spec spec = {};
  /// Set: the call itself asks for that.
  std::optional<Coding> coding = {};
};

}  // namespace mpress::engine
