// Messages of MPI's that carry no frames, as one start of a call has them under way.
#pragma once

#include <cstddef>
#include <vector>

#include "coll/team.hpp"
#include "mpi/calls/calls.hpp"
#include "mpi/collectives/blocks/blocks.hpp"
#include "trace/record.hpp"

namespace mpress::engine {

/// Both kinds are numbered from 0, in the order in which they are to be complete. What was neither
/// received nor sent is complete at once. Raises nothing. One thread at a time calls it.
class RawMessages {
 public:
  RawMessages(Job& job, trace::Called called, const Team& team, int tag)
      : job_(job), called_(called), team_(team), tag_(tag) {}

  /// Nothing may be under way.
  void start(std::size_t receives, std::size_t sends);

  /// `part` without bytes: there is none. A message of another length is an error, unless it `may`
  /// be shorter.
  void receive(std::size_t number, const Part& part, int from, bool may_be_shorter = false);
  void send(std::size_t number, const Part& part, int to);
  /// What tells the receiver that there is nothing to send, for an error.
  void send_nothing(std::size_t number, int to);

  /// Are the first `most` complete? Never waits.
  bool have_come(std::size_t most);
  bool are_sent();
  /// Wait in MPI, unless something else needs this process meanwhile. Return whether they have.
  bool wait_for(std::size_t most);
  bool wait_until_sent();

  /// Bytes of a receive that is complete; 0: no message came, or an error did, which is noted.
  std::size_t received_bytes(std::size_t number) const { return receives_[number].bytes; }

  /// Counts one that is over, of `raw_bytes` of blocks, unless it has none.
  void count(trace::Direction direction, int peer, std::size_t raw_bytes, std::size_t wire_bytes,
             Codec codec = Codec::none, trace::Reason reason = trace::Reason::none);

  /// An error code of MPI's.
  int code() const { return code_; }
  void note(int code) {
    if (code_ == MPI_SUCCESS) code_ = code;
  }

 private:
  struct Receive {
    MPI_Request request = MPI_REQUEST_NULL;
    std::size_t expected = 0;  ///< bytes; 0: as many as there is room for, or fewer
    std::size_t bytes = 0;     ///< that have come
  };
  bool may_wait() const;
  void take(Receive& receive, int code, const MPI_Status& status);

  Job& job_;
  const trace::Called called_;
  const Team& team_;
  const int tag_;
  std::vector<Receive> receives_;
  std::vector<MPI_Request> sends_;
  std::size_t come_ = 0;
  std::size_t sent_ = 0;
  int code_ = MPI_SUCCESS;
};

}  // namespace mpress::engine
