// A block that several ranks get: encoded once, by the sender or by whoever it has it from, and
// sent to each as one message of the team's communicator.
#pragma once

#include <memory>
#include <span>

#include "message/block.hpp"
#include "mpi/messages/send.hpp"
#include "pipeline/opaque_block.hpp"

namespace mpress::engine {

class Job;

/// The same as encode_block() of message/block.hpp; of `arguments` the destination does not count,
/// and `readers` are ranks of their communicator.
BlockChoice encode_block(Job& job, const SendCall& call, const SendArguments& arguments,
                         std::span<const int> readers, bool at_once);

/// The same of hold_block().
std::shared_ptr<OpaqueBlock> hold_block(Job& job, const SendCall& call,
                                        const SendArguments& arguments,
                                        std::span<const int> readers);

/// Begins to send an opaque block, whole or under way, to several readers, and counts the messages.
/// `arguments`: the block where this process has it, for reports; of its communicator `readers` are
/// ranks. Where a device has to encode or to copy what goes in one piece, waits for that. Raises
/// nothing: see SendOperation::ending().
std::shared_ptr<SendOperation> send_block(Job& job, const SendCall& call,
                                          const SendArguments& arguments,
                                          std::shared_ptr<OpaqueBlock> opaque,
                                          std::span<const int> readers, int tag);

}  // namespace mpress::engine
