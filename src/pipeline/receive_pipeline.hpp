// Chunks on their way to a region: each goes to the decoder when it has come, while the next ones
// travel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include "core/devices.hpp"
#include "link/link.hpp"
#include "pipeline/decoder.hpp"
#include "pipeline/received_block.hpp"
#include "trace/record.hpp"

namespace mpress::engine {

class ReceivePipeline {
 public:
  /// `device`: whose memory the decoder fills, or the host.
  ReceivePipeline(Runtime& runtime, const Chunking& cut, std::unique_ptr<Decoder> decoder,
                  int device);
  ~ReceivePipeline() {
    if (kept_) kept_->end();
  }

  /// Chunks come by a link, as `route` says, which knows it. `begin_ns`: link::Expected's.
  void open(link::Link& link, link::Route route, std::uint64_t begin_ns);

  /// The only chunk is here, a payload, and stays until advance() has returned true.
  void open(const std::byte* payload, std::size_t bytes);

  /// All chunks are here, in an opaque block that stays until advance() has returned true.
  void open(const OpaqueBlock& opaque);

  /// Before open(): chunks are kept in `opaque`, and decoded from there; or kept there alone.
  void keep_in(std::shared_ptr<ReceivedBlock> opaque, bool is_alone);

  /// Is it so?
  bool is_here() const { return inbound_->way() == trace::Way::whole; }

  /// Takes what has come. True when all has, or what has not will not. Never waits,
  /// but for the link to a rank that LinkedRate measures.
  bool advance();

  /// Is nothing on its way any more? What is left is to decode.
  bool has_come() const { return is_over_ || taken_ == cut_.chunks(); }

  /// The caller will do nothing else until then: what a device could tell the sender later, this
  /// process tells it then.
  void await() { inbound_->await(); }

  /// Must somebody call advance() for the sender to get on?
  bool needs_host() const { return !is_over_ && inbound_->needs_host(); }

  const Chunking& cut() const { return cut_; }

  // Once advance() has returned true:
  trace::Way way() const { return inbound_->way(); }
  Status status() const;
  std::size_t wire_bytes() const { return wire_bytes_; }
  std::uint64_t decode_ns() const { return decoder_->decode_ns(); }
  std::uint64_t transfer_ns() const { return transfer_ns_; }  ///< of chunks that came by a link
  double bound() const;                                       ///< as Outcome::bound has it

 private:
  /// A chunk that came, and is being kept.
  struct Waiting {
    link::Arrived arrived;  ///< without data: it did not come
    bool is_raw;
  };

  void begin_keeping();
  bool take_next();
  void give(const link::Arrived& arrived, bool is_raw);
  void give_kept();
  void note_arrival();
  void note_bound();
  bool bring_to_host();
  bool is_sound() const;
  void refuse(const std::string& why, Status status);
  std::uint64_t settled();

  Runtime& runtime_;
  const Chunking cut_;
  const int device_;  ///< whose queues read; the host where the decoder takes chunks from there
  bool is_kept_alone_ = false;
  std::shared_ptr<ReceivedBlock> kept_;  ///< null: they are not
  std::deque<Waiting> waiting_;          ///< for that, to be decoded then
  std::unique_ptr<Decoder> decoder_;     ///< outlives inbound_
  std::unique_ptr<link::Inbound> inbound_;
  bool may_come_raw_ = false;  ///< a chunk may be its elements although the message is encoded
  std::uint64_t taken_ = 0;    ///< chunks that have come
  std::uint64_t given_ = 0;    ///< chunks that the decoder has got
  link::Arrived arrived_;      ///< the next one, if it has come
  bool has_arrived_ = false;
  link::Arrived longest_;  ///< of what lies on another device as it is
  bool is_over_ = false;
  std::uint64_t began_ns_;       ///< when the next one was first looked for
  std::uint64_t opened_ns_ = 0;  ///< when the header was known; 0: the only chunk came with it
  std::uint64_t transfer_ns_ = 0;
  Status status_;  ///< what went wrong on the way
  std::size_t wire_bytes_ = 0;
  double payload_bound_ = 0;  ///< by payloads, where the header announces none
  gpu::Event copying_ = 0;    ///< of the next chunk to host memory; 0: not begun
  QueueLease queue_;
};

}  // namespace mpress::engine
