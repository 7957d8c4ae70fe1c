// A block that several ranks get: which link carries it to all, and what it is encoded with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/status.hpp"
#include "link/route.hpp"
#include "message/message.hpp"
#include "pipeline/opaque_block.hpp"
#include "trace/record.hpp"

namespace mpress::engine {

/// What becomes of a block.
struct BlockChoice {
  std::shared_ptr<OpaqueBlock> opaque;         ///< null: it goes to every reader as it is
  trace::Reason reason = trace::Reason::none;  ///< why
  Status status = {};                          ///< why it cannot be sent, where that is an error
};

/// Of a block, for the timeline.
std::uint32_t next_number(Messaging& messaging);

/// The link that reaches all readers, ranks in MPI_COMM_WORLD, with a block of `bytes` bytes in
/// memory of `device`; the channel link, where no other does.
link::Kind link_to(const Messaging& messaging, int device, std::size_t bytes,
                   std::span<const int> readers);

/// Slots of that link that all readers have, where the device makes or copies the chunks. None
/// where there is no room, or it is the channel link.
OpaqueBlock::StagingSlots find_staging(Messaging& messaging, const Chunking& cut, int device,
                                       link::Kind kind, std::span<const int> readers);

/// Decides, once, how a block goes to `readers`, ranks in MPI_COMM_WORLD, and begins to encode it
/// where that pays for any of them. `message`: the block, to nobody yet; its buffer stays as it is
/// until OpaqueBlock::advance() returns true. `at_once`: all of them get it by the same SharedSend.
BlockChoice encode_block(Messaging& messaging, Message message, std::span<const int> readers,
                         bool at_once);

/// Of a block that goes as it is, from memory of a device: an opaque block of its elements where
/// they are copied once for all readers. Null where an ordinary message to each is as good. The
/// buffer stays as it is while the block is sent.
std::shared_ptr<OpaqueBlock> hold_block(Messaging& messaging, Message message,
                                        std::span<const int> readers);

}  // namespace mpress::engine
