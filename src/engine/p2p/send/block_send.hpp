// A block that several ranks get: encoded once, by the sender or by whoever it has it from, and
// sent to each as one message of the context's communicator.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/operation.hpp"
#include "engine/p2p/receive/receive.hpp"
#include "engine/p2p/send/send.hpp"
#include "message/block.hpp"
#include "message/shared_send.hpp"
#include "mpi/calls/calls.hpp"
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

/// An opaque block, whole or under way, on its way to several readers: a message to each. It
/// proceeds by advance(), like any operation, and is over when all is published and MPI has done
/// its part.
class BlockSend final : public Operation {
 public:
  /// Counts the messages. `arguments`: the block where this process has it, for reports; of its
  /// communicator `readers` are ranks. Where a device has to encode or to copy what goes in one
  /// piece, waits for that. Raises nothing: see code().
  BlockSend(Job& job, const SendCall& call, const SendArguments& arguments,
            std::shared_ptr<OpaqueBlock> opaque, std::span<const int> readers, int tag);

  bool advance() override;
  bool needs_host() const override { return send_ && send_->needs_host(); }

  /// Once it is over, an MPI error code.
  int code() const { return code_; }

 private:
  void note(int code) {
    if (code_ == MPI_SUCCESS) code_ = code;
  }

  Job& job_;
  std::optional<SharedSend> send_;     ///< until it is over
  std::vector<MPI_Request> requests_;  ///< of MPI's, that are not over
  int code_ = MPI_SUCCESS;
};

}  // namespace mpress::engine
