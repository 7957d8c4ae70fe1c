// Messages of blocks as they are, as one start of a call has them under way.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "coll/blocks/envelope.hpp"
#include "coll/team.hpp"
#include "trace/record.hpp"

namespace mpress::engine {

struct Messaging;

/// Both kinds are numbered from 0, in the order in which they are to be complete. What was neither
/// received nor sent is complete at once. Raises nothing. One thread at a time calls it.
class RawMessages {
 public:
  /// All outlives it. `tag`: of the blocks.
  RawMessages(Messaging& messaging, trace::Called called, const Team& team, int tag)
      : messaging_(messaging),
        called_(called),
        team_(team),
        envelopes_(team.envelopes(messaging, tag)) {}

  /// Nothing may be under way.
  void start(std::size_t receives, std::size_t sends);

  /// A block without bytes: there is none. A message of another length is an error, unless it `may`
  /// be shorter.
  void receive(std::size_t number, const BlockData& place, int from, bool may_be_shorter = false);
  /// A frame may come all the same, and is decoded; see Envelopes::Content,
  /// which count it. `outcome`: where to add what it lost; outlives the
  /// message.
  void receive_likely_raw(std::size_t number, const BlockData& place, int from, Outcome& outcome);
  void send(std::size_t number, const BlockData& data, int to);
  /// What tells the receiver that there is nothing to send, for an error.
  void send_nothing(std::size_t number, int to);

  /// Are the first `most` complete? Never waits.
  bool have_come(std::size_t most);
  bool are_sent();
  /// Wait for messages alone, unless something else needs this process meanwhile. Return whether
  /// they have.
  bool wait_for(std::size_t most);
  /// Not before all receives are complete: data that follow a header may need this process.
  bool wait_until_sent();
  /// Must this process do something for others to get on?
  bool needs_host() const;

  /// Bytes of a receive that is complete; 0: no message came, or an error did, which is noted.
  std::size_t received_bytes(std::size_t number) const { return receives_[number].bytes; }

  /// Counts one that is over, of `raw_bytes` of blocks, unless it has none.
  void count(trace::Direction direction, int peer, std::size_t raw_bytes, std::size_t wire_bytes,
             Codec codec = Codec::none, trace::Reason reason = trace::Reason::none);

  Status status() const { return status_; }
  void note(Status status) {
    if (status_.is_ok()) status_ = status;
  }

 private:
  struct Receive {
    std::unique_ptr<Envelope> envelope = nullptr;
    std::size_t expected = 0;  ///< bytes; 0: as many as there is room for, or fewer
    std::size_t bytes = 0;     ///< that have come
  };
  bool may_wait() const;
  bool look(Receive& receive);
  bool pass_next();

  Messaging& messaging_;
  const trace::Called called_;
  const Team& team_;
  const std::unique_ptr<Envelopes> envelopes_;
  std::vector<Receive> receives_;
  std::vector<std::unique_ptr<Envelope>> sends_;
  std::size_t come_ = 0;
  std::size_t sent_ = 0;
  Status status_;
};

}  // namespace mpress::engine
