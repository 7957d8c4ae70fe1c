// Runs a schedule whose blocks are messages between two members of a team (coll/blocks/envelope).
// A block for several readers is encoded once and passed on as it came (coll/blocks/shared_blocks).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "coll/blocks/block_map.hpp"
#include "coll/blocks/envelope.hpp"
#include "coll/blocks/shared_blocks.hpp"
#include "coll/call.hpp"
#include "coll/team.hpp"
#include "message/messaging.hpp"
#include "pipeline/launch_batch.hpp"
#include "schedule/schedule.hpp"

namespace mpress::engine {

/// A schedule under way. A round may begin while the one before it is not over, so that links work
/// while blocks are encoded and decoded: its receives at once, unless they would take their share
/// of a link from those before; its sends when this rank has all that they bring, of all-to-alls
/// under the same condition. What is only passed on is sent once it has come, or as it comes,
/// whatever else is under way: it takes no codec, and no more memory. Transfers to a peer begin in
/// the order of their rounds (schedule/schedule.hpp). What cannot be sent comes empty, so that no
/// rank waits for ever, and is an error there, too. Raises nothing. One thread at a time calls it.
class Runner {
 public:
  /// `is_failed`: this rank takes part, but has nothing: all blocks of its own come empty.
  /// `coding`: see SharedBlocks. What it refers to outlives it.
  Runner(Messaging& messaging, Envelopes& envelopes, const Collective& call, trace::Called called,
         const Team& team, const schedule::Schedule& schedule, const BlockMap& blocks,
         bool is_failed, const Coding* coding = nullptr);

  /// The blocks that are encoded once for all of their readers.
  SharedBlocks& shared() { return shared_; }

  /// Lets it proceed, and waits for no rank. True once all rounds are over: no message is left
  /// under way.
  bool advance();

  /// Must this process do something for others to get on, which waits for none of them?
  bool needs_host() const;

  /// Somebody calls advance() until it is over, and does nothing else. Before that is called.
  void drive(bool is_driven) { is_driven_ = is_driven; }

  /// The program waits for it.
  void await(bool is_awaited) { is_awaited_ = is_awaited; }

  /// For a call that blocks, between two calls of advance(): where whoever matches messages can
  /// complete all that is under way, it waits for some of that, and waits best (Envelopes::wait()).
  /// Returns whether it has.
  bool wait();

  /// Other members will not answer: no more is received. What was sent may be left with them.
  void withdraw();

  /// Has all that this rank gets in the rounds that have begun come?
  bool is_coming() const;

  /// Have all rounds begun, and is each block that this rank gets here, or on its way to the opaque
  /// block that keeps it? What came to nothing counts as here: see status().
  bool is_all_coming() const;

  /// Is what this rank has for itself what others get of it, with a loss? As far as is known: a
  /// block's way is chosen when it is first sent.
  bool has_own_by_decoder() const { return shared_.has_own_by_decoder(); }

  /// Lets that proceed, when nothing else is copied there. True where there is nothing left to do,
  /// now, or for good once all rounds are over.
  bool advance_own() {
    if (!shared_.advance_own()) return false;
    note(shared_.own_status());
    return true;
  }

  /// The first failure so far.
  Status status() const { return status_; }

  /// Once all rounds are over: what the blocks that this rank sent and got have lost.
  Outcome outcome() const;

 private:
  /// A message under way.
  struct InFlight {
    std::unique_ptr<Envelope> envelope;
    bool is_received;
    int round;
    int peer = no_peer;                         ///< but for several readers
    std::size_t bytes = 0;                      ///< of one that is received, as elements
    std::optional<schedule::Block> block = {};  ///< of that
  };
  static constexpr int no_peer = -1;

  /// A message that is over for its sender, while the channel link may have more than one of its
  /// chunks to send.
  struct Leaving {
    std::uint64_t operation;
    int to;
  };

  /// A message that is ready to start.
  struct Departure {
    int to;
    BlockData data;
    std::optional<Prepared>
        prepared;  ///< nothing: it could not be made, of which its reader learns
  };

  void note(Status status) {
    if (status_.is_ok()) status_ = status;
  }
  int oldest_round() const;
  bool have_all_begun() const;
  bool may_begin(int round) const;
  bool begin_receives();
  bool begin_sends();
  bool may_follow(std::span<const schedule::Transfer> sends) const;
  bool may_leave(std::span<const schedule::Transfer> sends) const;
  bool may_come(std::span<const schedule::Transfer> receives) const;
  bool have_come(int round, int but) const;
  bool takes_turns() const;
  bool is_by_channel(int peer) const;
  bool has_all(std::span<const schedule::Transfer> sends) const;
  bool only_passes_on(std::span<const schedule::Transfer> sends) const;
  void receive(const schedule::Transfer& transfer);
  void receive(int from, schedule::Block block);
  bool keeps_devices_busy() const;
  void count_driven(std::size_t messages);
  void send_each(std::span<const schedule::Transfer> transfers);
  bool is_near_to(int peer) const;
  void send(const schedule::Transfer& transfer, LaunchBatch& batch, std::vector<Departure>& held);
  std::optional<Prepared> prepare(int to, const BlockData& data,
                                  std::optional<trace::Reason> raw_for, LaunchBatch* batch);
  void start(Departure departure);
  void send_shared(std::span<const schedule::Transfer> transfers);
  void send_shared(schedule::Block block, std::span<const int> readers, LaunchBatch& batch);
  bool has(schedule::Block block) const;
  void tell_failure(int to);
  bool is_over(const InFlight& message);
  void look();
  void wait_for_all();

  Messaging& messaging_;
  Envelopes& envelopes_;
  const Collective& call_;
  const trace::Called called_;
  const Team& team_;
  const schedule::Schedule& schedule_;
  const BlockMap& blocks_;
  const Coding* const coding_;
  SharedBlocks shared_;
  std::size_t next_send_ = 0;
  std::size_t next_receive_ = 0;
  int sending_ = -1;                 ///< the last round whose sends have begun
  int receiving_ = -1;               ///< and whose receives have
  std::vector<InFlight> in_flight_;  ///< that are not over, receives and sends each by their rounds
  std::vector<Leaving> leaving_;     ///< where it takes turns
  bool is_driven_ = false;
  Driven driven_;  ///< of the round that begins
  bool is_awaited_ = false;
  const bool is_failed_;
  Outcome outcome_;  ///< but for those of shared_
  Status status_;
};

}  // namespace mpress::engine
