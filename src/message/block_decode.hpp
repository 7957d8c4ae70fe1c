// A block that several ranks get, decoded for the one that has encoded it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/layout.hpp"
#include "core/status.hpp"
#include "memory/buffer_pool.hpp"
#include "message/receive_buffer.hpp"
#include "pipeline/opaque_block.hpp"
#include "pipeline/receive_pipeline.hpp"

namespace mpress::engine {

/// Decodes a whole opaque block to a buffer of this process's with its signature. One thread at a
/// time.
class BlockDecode {
 public:
  /// To `count` items at `data`, which outlive it, as the block does.
  BlockDecode(Messaging& messaging, const OpaqueBlock& opaque, void* data, std::int64_t count,
              std::shared_ptr<const Layout> layout);

  /// Waits for nothing but the last step of data with gaps. True once it is over.
  bool advance();

  /// Then: what came of it.
  Status status() const { return status_; }

 private:
  Status open(const OpaqueBlock& opaque);

  Messaging& messaging_;
  const std::shared_ptr<const Layout> layout_;
  ReceiveBuffer buffer_;
  memory::Buffer packed_;  ///< elements that the buffer has with gaps, or cannot take as they are
  std::optional<ReceivePipeline> pipeline_;
  Status status_;
};

}  // namespace mpress::engine
