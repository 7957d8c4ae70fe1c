// The receiving side of a message: from the place where it is received to the program's data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "core/asked.hpp"
#include "core/status.hpp"
#include "message/incoming.hpp"
#include "message/receive_place.hpp"
#include "trace/record.hpp"
#include "trace/timeline.hpp"
#include "wire/frame.hpp"

namespace mpress::engine {

/// Of a message that has come, from a rank in MPI_COMM_WORLD, and that there is no memory for:
/// discards the data that follow it, so that its sender need not wait for a reader.
void discard(Messaging& messaging, std::span<const std::byte> message, int source);

/// A receive that may turn out to be a frame. Whoever matches messages (MPI; in tests a queue)
/// receives at place() and says what has come there, or lies elsewhere. Ranks are those of
/// MPI_COMM_WORLD, or trace::any_peer.
class Receive {
 public:
  explicit Receive(Messaging& messaging) : messaging_(messaging), place_(messaging) {}

  const ReceivePlace& place() const { return place_; }
  ReceivePlace& place() { return place_; }

  /// See ReceiveBuffer::describe(). It counts as `op`; a collective call has waited for what the
  /// program's default streams hold. `outcome`: where to add what becomes of it; outlives this.
  void describe(trace::Called op, void* data, std::int64_t count, const Layout* layout,
                Outcome* outcome);

  /// Keeps an encoded message in `opaque`, too, or there alone. A raw one leaves `opaque` empty.
  void keep_in(std::shared_ptr<ReceivedBlock> opaque, bool alone) {
    kept_in_ = std::move(opaque);
    is_kept_alone_ = alone;
  }

  /// With a paced link the message travels from then on; 0: from when it is delivered.
  void travels_from(std::uint64_t begin_ns) { travel_begin_ns_ = begin_ns; }

  /// Notes that a blocking call has waited for the message, from `begin_ns` until now.
  void waited_since(std::uint64_t begin_ns);

  // A message whose data follow a header is not all there when its header has come.

  /// May such a message come?
  bool expects_data() const;

  /// Something has come, of a size that is not known yet: may it be such a header, or is it to be
  /// saved from other receives?
  bool may_be_header();

  /// Is the message a frame, or was it meant to be one? Parses its header, once.
  bool has_frame(std::size_t bytes);

  /// Begins to collect the data that follow the message, which has come from `source`. False where
  /// there are none that the program can have: deliver() knows what to do.
  bool collect(std::size_t bytes, int source);
  /// Collects for a message that lies at `data`.
  bool collect(const std::byte* data, std::size_t bytes, int source);

  /// Set while data is collected.
  const Incoming* incoming() const { return incoming_.get(); }

  /// Takes what has come of them, without waiting. True where deliver() will not wait.
  bool advance() { return incoming_->advance(); }

  /// No data follow a message that has come for a contested receive: see ReceivePlace::save().
  void save(std::size_t bytes);

  /// Makes the message that has come the program's data.
  void deliver(std::size_t bytes, int source);
  /// Delivers a message that lies at `data`.
  void deliver(const std::byte* data, std::size_t bytes, int source);
  /// Delivers data that are collected. Waits for those that are still to come.
  void deliver() { end(conclude()); }

  /// It is over with an error that the caller knows.
  void fail() { end(Status::ok); }

  struct Result {
    Status status = Status::ok;
    std::size_t bytes = 0;        ///< of data that were delivered
    bool is_as_received = false;  ///< nothing became of the message but what came
  };
  /// Null until it is delivered, or never will be.
  const Result* result() const { return is_over_ ? &result_ : nullptr; }

  /// For another message.
  void renew();

 private:
  bool is_parsed(std::size_t bytes) const { return parse_ && parsed_bytes_ == bytes; }
  void look_at(const std::byte* data, std::size_t bytes);
  void end(Status status) {
    result_.status = status;
    is_over_ = true;
  }
  Status copy_frame(std::size_t bytes, std::byte* beginning, memory::Buffer& frame);
  bool begin(int source);
  Destination destination();
  Status deliver_parsed(const std::byte* data, std::size_t bytes, int source);
  Status deliver_raw(const std::byte* data, std::size_t bytes, int source);
  Status deliver_frame(const std::byte* data, int source);
  Status conclude();
  trace::Key key(int source, Codec codec, trace::Way way) const;
  void note_message(int source, Codec codec, std::size_t wire_bytes, std::uint32_t message) const;

  Messaging& messaging_;
  ReceivePlace place_;
  trace::Called op_ = trace::Op::recv;
  Outcome* outcome_ = nullptr;
  std::shared_ptr<ReceivedBlock> kept_in_;
  bool is_kept_alone_ = false;
  std::optional<wire::Parse> parse_;  ///< of what has come, once somebody has looked
  std::size_t parsed_bytes_ = 0;      ///< of that
  wire::Header header_;               ///< where that is a frame
  std::unique_ptr<Incoming> incoming_;
  Result result_;
  bool is_over_ = false;
  std::uint64_t travel_begin_ns_ = 0;
  std::uint64_t waited_ns_ = 0;
  std::uint64_t posted_ns_ = 0;  ///< when, for the timeline
};

}  // namespace mpress::engine
