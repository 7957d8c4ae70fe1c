// A message of which the beginning has been matched: a frame, or a header whose data comes by a
// link.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "codec/element.hpp"
#include "core/devices.hpp"
#include "gpu/gpu.hpp"
#include "link/link.hpp"
#include "memory/buffer_pool.hpp"
#include "pipeline/receive_pipeline.hpp"
#include "pipeline/received_block.hpp"
#include "wire/frame.hpp"

namespace mpress::engine {

struct Messaging;

/// Where the elements of a message are wanted.
struct Destination {
  std::byte* buffer;            ///< the program's
  int device = gpu::host;       ///< whose memory that is
  bool takes_elements = false;  ///< they lie there without gaps, and nothing else comes there
  Devices::Behind behind = {};  ///< what work in the buffer comes behind, as Region has it
  std::shared_ptr<ReceivedBlock> kept_in = {};  ///< set: what comes encoded is kept there, too
  bool is_kept_alone = false;                   ///< or there alone
};

class Incoming {
 public:
  /// The link that carries the data which `header` announces, from a rank in MPI_COMM_WORLD; null
  /// where it cannot come.
  static link::Link* link_of(Messaging& messaging, const wire::Header& header, int source);

  /// Begins to receive what `header` announces, by that link. `begin_ns`: link::Expected's. Null
  /// where memory is short.
  static std::unique_ptr<Incoming> from_link(Messaging& messaging, const wire::Header& header,
                                             int source, const Destination& to,
                                             std::uint64_t begin_ns);

  /// The same of a frame, whose payload stays until advance() has returned true.
  static std::unique_ptr<Incoming> from_frame(Messaging& messaging, const wire::Header& header,
                                              int source, const Destination& to,
                                              const std::byte* payload);

  Incoming(const Incoming&) = delete;
  Incoming& operator=(const Incoming&) = delete;

  /// Takes what has come, without waiting. True once all has, or what has not will not: status()
  /// tells.
  bool advance() { return pipeline_->advance(); }

  /// Must somebody take what has come for the sender to get on?
  bool needs_host() const { return pipeline_->needs_host(); }

  /// Is nothing of it on its way any more?
  bool has_come() const { return pipeline_->has_come(); }

  const ReceivePipeline& pipeline() const { return *pipeline_; }
  ReceivePipeline& pipeline() { return *pipeline_; }

  /// Do its elements come straight to where they are wanted?
  bool is_in_place() const { return !packed_; }

  /// After advance() has returned true, where is_in_place() says no: the elements, in memory of the
  /// buffer's device, or of the host.
  const std::byte* elements() const { return packed_.data(); }

 private:
  Incoming() = default;
  static std::unique_ptr<Incoming> make(Messaging& messaging, const Chunking& cut,
                                        const Destination& to, From from);

  memory::Buffer packed_;
  std::unique_ptr<ReceivePipeline> pipeline_;
};

}  // namespace mpress::engine
