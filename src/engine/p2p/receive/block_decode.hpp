// A block that several ranks get, decoded for the one that has encoded it.
#pragma once

#include <optional>

#include "engine/p2p/receive/receive.hpp"
#include "memory/buffer_pool.hpp"
#include "pipeline/opaque_block.hpp"
#include "pipeline/receive_pipeline.hpp"

namespace mpress::engine {

class Job;

/// Decodes a whole opaque block to a buffer of this process's with its signature. One thread at a
/// time.
class BlockDecode {
 public:
  /// The block and the buffer outlive it.
  BlockDecode(Job& job, const OpaqueBlock& opaque, const ReceiveArguments& to);

  /// Waits for nothing but the last step of data with gaps. True once it is over.
  bool advance();

  /// Then: an MPI error code, that is not raised.
  int code() const { return code_; }

 private:
  int open(const OpaqueBlock& opaque);
  int lay_out(std::size_t bytes);

  Job& job_;
  const ReceiveArguments to_;
  std::shared_ptr<mpi::TypeInfo> type_;
  int device_ = gpu::host;  ///< whose memory the buffer is
  memory::Buffer packed_;   ///< elements that the buffer has with gaps, or cannot take as they are
  std::optional<ReceivePipeline> pipeline_;
  int code_;
};

}  // namespace mpress::engine
