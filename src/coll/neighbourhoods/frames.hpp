// The blocks of messages that carry several: each is encoded once, by its origin, travels as a
// frame (wire/frame.hpp) or as it is, and is decoded once, where it belongs.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "coll/blocks/block_map.hpp"
#include "coll/call.hpp"
#include "coll/team.hpp"
#include "message/message.hpp"
#include "pipeline/opaque_block.hpp"
#include "trace/record.hpp"

namespace mpress::engine {

/// Raises nothing. One thread at a time calls it.
class Frames {
 public:
  /// `coding`: null, or what the call itself asks for; outlives it.
  Frames(Messaging& messaging, const Collective& call, trace::Called called, const Team& team,
         const Coding* coding)
      : messaging_(messaging), call_(call), called_(called), team_(team), coding_(coding) {}

  /// Forgets what has been encoded.
  void restart();

  /// The frame of a block of this process's, which `number` tells from the others, on its way to a
  /// member; empty: it goes as it is. Waits for a device that has to encode. The same at each time
  /// until restart().
  std::span<const std::byte> frame(std::uint32_t number, const BlockData& data, int to);

  /// Decodes one that came from a member. Waits for a device that has to.
  Status decode(std::span<const std::byte> frame, int from, const BlockData& data);

  /// The codec of what has been encoded, for the statistics.
  Codec codec() const { return codec_; }
  /// Of what this process has encoded or decoded, as Outcome::bound has it.
  double bound() const { return bound_; }
  /// Of what could not be encoded.
  Status status() const { return status_; }

 private:
  struct Encoded {
    std::shared_ptr<OpaqueBlock> opaque;
    std::span<const std::byte> frame;
  };
  std::span<const std::byte> encode(Encoded& encoded, const BlockData& data, int to);

  Messaging& messaging_;
  const Collective& call_;
  const trace::Called called_;
  const Team& team_;
  const Coding* const coding_;
  std::map<std::uint32_t, Encoded> encoded_;
  Codec codec_ = Codec::none;
  double bound_ = 0;
  Status status_;
};

}  // namespace mpress::engine
