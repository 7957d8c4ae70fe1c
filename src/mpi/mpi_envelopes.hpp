// Blocks of collective calls as MPI's messages on a team's private communicator.
#pragma once

#include <memory>
#include <span>

#include "coll/blocks/envelope.hpp"
#include "mpi/calls/calls.hpp"

namespace mpress::engine {

class Job;
class Team;

/// Layouts of blocks are those of MPI's types (mpi::TypeInfo), or plain ones. So blocks have the
/// protocols, links, codecs, statistics and faults of messages.
class MpiEnvelopes final : public Envelopes {
 public:
  /// Messages on a team's private communicator, under `tag`.
  MpiEnvelopes(Job& job, const Team& team, MPI_Comm comm, int tag);

  std::unique_ptr<Envelope> receive(const BlockData& place, int from,
                                    const Receiving& how) override;
  std::unique_ptr<Envelope> send(const BlockData& data, int to) override;
  std::unique_ptr<Envelope> send(const BlockData& data, Prepared prepared, int to) override;
  std::unique_ptr<Envelope> send(std::unique_ptr<Send> send, ElementType type,
                                 std::span<const int> readers) override;
  std::unique_ptr<Envelope> send_nothing(int to) override;
  void end_round() override { has_mpi_proceeded_ = false; }
  void wait(Envelope& one) override;

 private:
  class Matched;
  class Discarded;
  class LikelyRaw;
  class Received;
  class ReceivedBytes;
  class Sent;
  class SentFrame;
  class SentApart;

  Job& job_;
  const Team& team_;
  const MPI_Comm comm_;
  const int tag_;
  bool has_mpi_proceeded_ = false;  ///< in this round
};

}  // namespace mpress::engine
