// Runs a schedule whose blocks are messages between two ranks, on a team's private communicator.
// So blocks have the protocols, links, codecs, statistics and faults of messages. What several
// ranks get is encoded once and passed on as it came: coll/blocks/shared_blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/backoff.hpp"
#include "engine/coll/blocks/blocks.hpp"
#include "engine/coll/blocks/shared_blocks.hpp"
#include "engine/coll/route.hpp"
#include "memory/buffer_pool.hpp"
#include "mpi/calls/calls.hpp"
#include "mpi/messages/receive_request.hpp"
#include "mpi/messages/send.hpp"
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
  /// Blocks have `tag`. Where `code` tells of an error, all blocks of this rank come empty.
  /// `coding`: see SharedBlocks. What it refers to outlives it.
  Runner(Job& job, const Collective& call, trace::Called called, const Team& team, int tag,
         const schedule::Schedule& schedule, const BlockMap& blocks, int code,
         const Coding* coding = nullptr);

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

  /// For a call that blocks, between two calls of advance(): where MPI can complete all that is
  /// under way, it waits for some of that, and waits best. Returns whether it has.
  bool wait_in_mpi();

  /// Other members will not answer: no more is received. What was sent may be left with them.
  void withdraw();

  /// Has all that this rank gets in the rounds that have begun come?
  bool is_coming() const;

  /// Have all rounds begun, and is each block that this rank gets here, or on its way to the opaque
  /// block that keeps it? What came to nothing counts as here: see code().
  bool is_all_coming() const;

  /// Is what this rank has for itself what others get of it, with a loss? As far as is known: a
  /// block's way is chosen when it is first sent.
  bool has_own_by_decoder() const { return shared_.has_own_by_decoder(); }

  /// Lets that proceed, when nothing else is copied there. True where there is nothing left to do,
  /// now, or for good once all rounds are over.
  bool advance_own() {
    if (!shared_.advance_own()) return false;
    note(shared_.own_code());
    return true;
  }

  /// An error code of MPI's.
  int code() const { return code_; }

  /// Once all rounds are over: what the blocks that this rank sent and got have lost.
  Outcome outcome() const;

 private:
  /// A message under way.
  struct Message {
    bool is_received;
    int round;
    int peer = MPI_PROC_NULL;                           ///< but for several readers
    std::size_t bytes = 0;                              ///< of one that is received, as elements
    MPI_Request request = MPI_REQUEST_NULL;             ///< MPI's, unless `send` has it
    std::shared_ptr<ReceiveRequest> receive = nullptr;  ///< what comes may be a frame
    std::shared_ptr<SendOperation> send = nullptr;      ///< its data travels apart
    memory::Buffer frame = {};
    std::optional<schedule::Block> block = {};  ///< of one that is received
    bool is_complete = false;                   ///< for MPI, which gave `status` and `code`
    MPI_Status status{};
    int code = MPI_SUCCESS;
  };

  /// A message that is over for its sender, while MPI may have several chunks of it to send.
  struct Leaving {
    std::uint64_t operation;
    int to;
  };

  /// A message that is ready to start.
  struct Departure {
    int to;
    std::optional<Outgoing> out;  ///< nothing: it could not be made, which its reader is told
  };

  void note(int code) {
    if (code_ == MPI_SUCCESS) code_ = code;
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
  bool is_by_mpi(int peer) const;
  bool has_all(std::span<const schedule::Transfer> sends) const;
  bool only_passes_on(std::span<const schedule::Transfer> sends) const;
  void receive(const schedule::Transfer& transfer);
  void receive(int from, const Part& part, schedule::Block block);
  bool keeps_devices_busy() const;
  void count_driven(std::size_t messages);
  void send_each(std::span<const schedule::Transfer> transfers);
  bool is_near_to(int peer) const;
  void send(const schedule::Transfer& transfer, LaunchBatch& batch, std::vector<Departure>& held);
  std::optional<Outgoing> prepare(int to, const Part& part, std::optional<trace::Reason> raw_for,
                                  LaunchBatch* batch);
  void start(Departure&& departure);
  void send_shared(std::span<const schedule::Transfer> transfers);
  void send_shared(schedule::Block block, std::span<const int> readers, LaunchBatch& batch);
  bool has(schedule::Block block) const;
  void tell_failure(int to);
  bool is_over(Message& message);
  void look();
  void wait_for(Message& message);
  void wait_for_all();

  Job& job_;
  const Collective& call_;
  const trace::Called called_;
  const Team& team_;
  const int tag_;
  const schedule::Schedule& schedule_;
  const BlockMap& blocks_;
  const Coding* const coding_;
  SharedBlocks shared_;
  std::size_t next_send_ = 0;
  std::size_t next_receive_ = 0;
  int sending_ = -1;               ///< the last round whose sends have begun
  int receiving_ = -1;             ///< and whose receives have
  std::vector<Message> messages_;  ///< that are not over, receives and sends each by their rounds
  std::vector<Leaving> leaving_;   ///< where it takes turns
  bool is_driven_ = false;
  Driven driven_;  ///< of the round that begins
  bool is_awaited_ = false;
  bool has_mpi_proceeded_ = false;  ///< since the last look at all messages
  const bool has_own_;              ///< blocks
  Outcome outcome_;                 ///< but for those of shared_
  int code_;
};

}  // namespace mpress::engine
