// The teams of communicators (coll/team.hpp), each made at the communicator's first call that could
// pay: its channel is a private communicator, without mpress's attributes, that returns errors.
//
// MPI_Comm_idup makes it, as an operation; in a call that may block MPI_Comm_split does. Members
// that do not run mpress, or run it without MPI_Init, take no part: such communicators have no team
// (Teams::may_have()).
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "coll/team.hpp"
#include "core/progress.hpp"
#include "mpi/mpi_channel.hpp"
#include "mpi/objects/comm_info.hpp"
#include "mpi/peek.hpp"

namespace mpress::engine {

class Teams;

/// The team of a communicator.
class CommTeam final : public Team, public mpi::Attachment {
 public:
  /// With the members' ranks; returns errors. MPI_COMM_NULL where MPI could not make it. A call
  /// that MPI has to serve after all is issued here, in the order of calls.
  MPI_Comm comm() const { return comm_; }

  std::unique_ptr<Envelopes> envelopes(Messaging& messaging, int tag) const override;

  const CommSettings& settings() const override;
  void take_hints() const override;

  void comm_ends() override;
  void comm_freed() override { let_go(); }

 private:
  friend class Teams;
  class Making;
  class Release;

  CommTeam(Teams& all, MPI_Comm parent, std::vector<int> members, const Facts& facts);
  void duplicate(MPI_Comm parent);
  void split(MPI_Comm parent);
  void adopt(MPI_Comm comm);
  void make_channel() override;
  void end() override;
  bool free_comm();
  std::shared_ptr<CommTeam> self();
  mpi::CommInfo& info() const;

  Teams& all_;
  const mpi::CommInfo* of_ = nullptr;  ///< whose team it is; lives while calls of that do
  mutable std::atomic<mpi::CommInfo*> info_{nullptr};  ///< of `comm_`, as long as that is there
  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Request request_ = MPI_REQUEST_NULL;
  mpi::MpiChannel channel_;
};

/// The private communicator of a team: in a process that runs MPI each is a communicator's.
inline MPI_Comm comm_of(const Team& team) { return static_cast<const CommTeam&>(team).comm(); }

/// A failure that MPI reported by an error code; Job::code_of() gives that back.
inline Status status_of(int code) {
  return code == MPI_SUCCESS ? Status() : Status::of_transport(code);
}

/// The teams of this process. Thread-safe, but for open() and close().
class Teams {
 public:
  Teams(Progress& progress, const mpi::Peek& peek) : progress_(progress), peek_(peek) {}

  /// Collective over MPI_COMM_WORLD, in MPI_Init; blocks until the world's team is decided.
  /// `facts`: this rank's, of every communicator. `ranks_a_host`: see open_hosts().
  void open(const link::HostMemory::Nonce& nonce, const Facts& facts, int ranks_a_host = 0);
  bool is_open() const { return world_ != nullptr; }

  /// What all ranks take for the environment's word, also where theirs differ.
  void set_reproducible(bool is_set);

  /// As all ranks know: may private communicators be duplicates, which have a topology?
  void keep_topologies() { keeps_topologies_ = true; }

  /// That of MPI_COMM_WORLD; null unless open.
  const std::shared_ptr<CommTeam>& world() const { return world_; }

  /// That of a communicator, whose making begins where it has none: then all members have to make
  /// this call at the same place in the order of its collective calls. Null where it may have none.
  Team* of(const std::shared_ptr<mpi::CommInfo>& comm);

  /// The same in a call that may block, and does so while MPI makes the private communicator. Its
  /// caller has flushed Progress.
  Team* of_blocking(const std::shared_ptr<mpi::CommInfo>& comm);

  /// That of a communicator which has one; else null.
  static Team* made_for(const mpi::CommInfo& comm);

  /// Has it one that is settled? That of MPI_COMM_WORLD is from MPI_Init on.
  bool is_settled(const mpi::CommInfo& comm) const;

  /// Whether it may have one, as all its members know without asking: mpress is at work in all of
  /// them, since MPI_Init.
  bool may_have(const mpi::CommInfo& comm) const;

  /// Lets go of what teams have kept, in MPI_Finalize, when nothing of the program's is under way;
  /// before links are closed.
  void drop_kept();

  /// Frees what is private, in MPI_Finalize, when nothing of the program's is under way.
  void close();

  Hosts& hosts() { return boards_.hosts(); }

 private:
  friend class CommTeam;

  template <typename Begin>
  Team* of(const std::shared_ptr<mpi::CommInfo>& comm, Begin begin);

  Progress& progress_;
  const mpi::Peek& peek_;
  Boards boards_;
  Facts facts_;
  std::shared_ptr<CommTeam> world_;
  bool keeps_topologies_ = false;

  std::mutex mutex_;  ///< never held while MPI is called
  std::vector<std::weak_ptr<CommTeam>> all_;
};

}  // namespace mpress::engine
