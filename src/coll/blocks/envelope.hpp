// Messages between the members of a team that carry blocks. Somebody else matches them: the binding
// by MPI, on the team's private communicator (mpi/mpi_envelopes.hpp), tests by a queue of
// memory (tests/loopback). Who matches sees raw data, a frame, or a header whose data a link
// carries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "codec/element.hpp"
#include "coll/blocks/block_map.hpp"
#include "core/asked.hpp"
#include "core/devices.hpp"
#include "core/hints.hpp"
#include "core/status.hpp"
#include "message/message.hpp"
#include "message/send.hpp"
#include "pipeline/received_block.hpp"
#include "trace/record.hpp"

namespace mpress::engine {

/// A block as a message to no member yet; `place`: where it lies. All but `place` outlives it.
inline Message block_message(const SendCall& call, const BlockData& data,
                             const CommSettings& settings, const Location& place) {
  return {call,       data.data,    data.count,       *data.layout, settings, trace::any_peer,
          data.bytes, place.device, place.is_readable};
}

/// A message under way. One thread at a time calls it.
class Envelope {
 public:
  Envelope() = default;
  Envelope(const Envelope&) = delete;
  Envelope& operator=(const Envelope&) = delete;
  virtual ~Envelope() = default;

  /// Lets it proceed, and waits for nothing. True once it is over: memory that it was sent from is
  /// free, what was received is the program's, or kept. Not called again then.
  virtual bool advance() = 0;

  /// Then. Of a received one an error, too, where its sender could not send it.
  virtual Status status() const = 0;

  /// May Envelopes::wait() be called? Not where its data travel apart.
  virtual bool can_be_waited_for() const = 0;

  /// Other members take no part any more. Ends what somebody else matches; what links carry may be
  /// left with them.
  virtual void withdraw() = 0;

  // Of one that is received:

  /// Bytes of the message, once it is over without an error.
  virtual std::size_t received_bytes() const { return 0; }
  /// Has its beginning been matched?
  virtual bool has_begun() const { return true; }
  /// Is nothing of it on its way any more?
  virtual bool has_come() const { return true; }

  /// Must this process do something for it that waits for no other?
  virtual bool needs_host() const { return false; }

  // Of one that is sent, where its data travel apart; see Send:

  virtual bool is_offered() const { return false; }
  /// The caller waits for nothing else.
  virtual void await(bool /*is_awaited*/) {}
  /// Its serial number; nothing: its data do not travel apart.
  virtual std::optional<std::uint64_t> operation() const { return std::nullopt; }
};

/// Envelopes of one call, in one member. One that cannot be started is over, with its status. Ranks
/// are the team's. Raises nothing.
class Envelopes {
 public:
  Envelopes() = default;
  Envelopes(const Envelopes&) = delete;
  Envelopes& operator=(const Envelopes&) = delete;
  virtual ~Envelopes() = default;

  enum class Content : unsigned char {
    block,
    /// Nothing is prepared for a frame, which may come all the same where the place has no gaps.
    /// That is the CPU's; what describes it stays, too, until the message is over.
    likely_raw_block,
    bytes,  ///< that the caller reads, and counts
  };

  /// How a message is received.
  struct Receiving {
    trace::Called called;  ///< what it counts as
    Content content = Content::block;
    bool may_be_encoded = false;                       ///< although no rank gains by that
    std::shared_ptr<ReceivedBlock> kept_in = nullptr;  ///< set: what comes encoded is kept there,
    bool is_kept_alone = false;                        ///< or there alone
    Outcome* outcome = nullptr;  ///< where to add what becomes of it; outlives the message
  };
  virtual std::unique_ptr<Envelope> receive(const BlockData& place, int from,
                                            const Receiving& how) = 0;

  /// Sends a block as it is, which stays so until the message is over.
  virtual std::unique_ptr<Envelope> send(const BlockData& data, int to) = 0;

  /// Sends what a message became (prepare()) to one reader. `data`: the block where this process
  /// has it, which stays as it is until the message is over.
  virtual std::unique_ptr<Envelope> send(const BlockData& data, Prepared prepared, int to) = 0;

  /// Sends the beginnings of what travels apart, of elements of `type`; the readers are those of
  /// `send`, by number.
  virtual std::unique_ptr<Envelope> send(std::unique_ptr<Send> send, ElementType type,
                                         std::span<const int> readers) = 0;

  /// In the place of a block that cannot be sent: its reader receives no bytes.
  virtual std::unique_ptr<Envelope> send_nothing(int to) = 0;

  /// After a look at all of them, by their advance().
  virtual void end_round() {}

  /// Blocks until one is sent, or has come: advance() finds it so. Nothing else proceeds meanwhile.
  virtual void wait(Envelope& one) = 0;
};

}  // namespace mpress::engine
