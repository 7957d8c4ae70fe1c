// A block that several ranks get: encoded once, by the sender or by whoever it has it from, and
// sent to each as one message of the context's communicator.
//
// Readers that one link reaches share its slots; each has a header of its own. By MPI the memory of
// the block is sent from as it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "core/operation.hpp"
#include "engine/p2p/receive/receive.hpp"
#include "engine/p2p/send/send.hpp"
#include "message/block.hpp"
#include "mpi/calls/calls.hpp"
#include "pipeline/opaque_block.hpp"
#include "pipeline/send_pipeline.hpp"
#include "trace/record.hpp"

namespace mpress::engine {

class Job;
struct Message;

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
  ~BlockSend() override;

  bool advance() override;
  bool needs_host() const override;

  /// Once it is over, an MPI error code.
  int code() const { return code_; }

 private:
  struct Reader;
  struct Header;

  void plan(std::vector<Reader>& readers, bool all);
  void take_home(std::vector<Reader>& readers);
  bool reserve(link::Link& link, std::span<const Reader> readers);
  void send_headers(const Message& like);
  void send_frames(const Message& like, std::span<const Reader> readers);
  void tell_failure(std::span<const Reader> readers);
  bool advance_data();
  void post(const std::byte* data, std::size_t bytes, const Reader& reader);
  void note(int code) {
    if (code_ == MPI_SUCCESS) code_ = code;
  }

  Job& job_;
  const std::shared_ptr<OpaqueBlock> opaque_;
  const std::uint64_t operation_;
  const MPI_Comm comm_;
  const int tag_;
  const trace::Reason reason_;  ///< why it goes as it is
  const Driven driven_;
  const double share_in_windows_;  ///< as Coding says; of elements as they are: 1
  const std::uint64_t begin_ns_;
  std::deque<SendPipeline> lanes_;  ///< links, each with the readers that it reaches
  std::vector<std::unique_ptr<Header>> headers_;
  std::vector<MPI_Request> requests_;  ///< of MPI's, that are not over
  std::vector<trace::Span> spans_;     ///< of frames
  bool is_sent_ = false;               ///< the data, but for what MPI has
  int code_ = MPI_SUCCESS;
};

}  // namespace mpress::engine
