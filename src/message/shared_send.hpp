// A block that several ranks get, on its way to them: what MPI carries to each of them first, and
// the chunks that follow.
//
// Readers that one link reaches share its slots; each has a header of its own. By MPI the memory of
// the block is sent from as it is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "core/status.hpp"
#include "link/link.hpp"
#include "message/message.hpp"
#include "message/send.hpp"
#include "pipeline/opaque_block.hpp"
#include "pipeline/send_pipeline.hpp"
#include "trace/record.hpp"
#include "trace/timeline.hpp"
#include "wire/frame.hpp"

namespace mpress::engine {

struct Messaging;

class SharedSend final : public Send {
 public:
  /// Finds slots for an opaque block, whole or under way, and counts the messages. `message`: the
  /// block where this process has it, to nobody yet; `readers`: ranks in MPI_COMM_WORLD. Where a
  /// device has to encode or to copy what goes in one piece, waits for that.
  SharedSend(Messaging& messaging, const Message& message, std::shared_ptr<OpaqueBlock> opaque,
             std::span<const int> readers);

  bool advance(bool waits_for_more) override;
  bool needs_host() const override;
  Status status() const override { return status_; }

 private:
  struct Reader {
    std::size_t number;
    int rank;  ///< in MPI_COMM_WORLD
  };
  struct Header {
    Reader reader;
    link::Route route;
    trace::Row* row = nullptr;
    trace::Span span = {};
    std::array<std::byte, wire::min_frame_bytes> bytes = {};
  };

  void plan(std::vector<Reader>& readers, const SendCall& call, bool all);
  void take_staging(std::vector<Reader>& readers);
  bool reserve(link::Link& link, std::span<const Reader> readers, const SendCall& call);
  bool add_frames(const Message& like, std::span<const Reader> readers);
  void add_headers(const Message& like);
  Departure departure(const Message& like, std::size_t wire_bytes) const;
  void note(Status status) {
    if (status_.is_ok()) status_ = status;
  }

  Messaging& messaging_;
  const std::shared_ptr<OpaqueBlock> opaque_;
  const std::uint32_t number_;  ///< of it, in routes and in the timeline
  const std::uint64_t begin_ns_;
  std::deque<SendPipeline> lanes_;  ///< links, each with the readers that it reaches
  std::vector<Header> headers_;
  std::vector<trace::Span> spans_;  ///< of frames
  Status status_;
};

}  // namespace mpress::engine
