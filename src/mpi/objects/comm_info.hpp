// What mpress knows about a communicator.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "core/hints.hpp"
#include "mpi/calls/calls.hpp"
#include "mpi/objects/hints.hpp"
#include "mpi/objects/topology.hpp"

namespace mpress::mpi {

/// What a layer above hangs on a communicator.
class Attachment {
 public:
  virtual ~Attachment() = default;

  /// The program frees the communicator, whose handle still works. May call MPI.
  virtual void comm_ends() = 0;

  /// It is freed, behind comm_ends(). May call MPI.
  virtual void comm_freed() = 0;
};

/// What a layer above knows of a communicator's graph.
class GraphNote {
 public:
  virtual ~GraphNote() = default;
};

/// A duplicate inherits the hints.
struct CommInfo : engine::CommSettings {
  CommInfo() = default;
  CommInfo(const CommInfo&) = delete;
  CommInfo& operator=(const CommInfo&) = delete;
  ~CommInfo();

  MPI_Comm comm = MPI_COMM_NULL;
  bool no_frames = false;          ///< those between groups, and see carry_no_frames()
  std::atomic<bool> freed{false};  ///< the handle is no longer valid
  std::vector<int> world_ranks;
  /// As is known of those that MPI has made under mpress, and is inherited: Open MPI takes a graph
  /// of a grid's processes for that grid.
  bool is_distributed_graph = false;
  std::shared_ptr<const GraphNote> graph;  ///< set before the program has the communicator
  std::atomic<unsigned> short_sums{0};  ///< reductions that were too short to attach anything for

  /// Null where there is none. Lives as long as this.
  Attachment* attached() const { return attached_.load(std::memory_order_acquire); }

  /// One thread does so, once.
  void attach(std::shared_ptr<Attachment> attachment) {
    attachment_ = std::move(attachment);
    attached_.store(attachment_.get(), std::memory_order_release);
  }

  /// The neighbours of this process; null where the communicator has no topology. Lives as long as
  /// this.
  const Topology* topology() const;

  /// The rank in MPI_COMM_WORLD of `rank`; trace::any_peer where it has none there.
  int world_rank(int rank) const;

  /// Calls the communicator's error handler with `code`; returns `code`.
  int raise(int code) const;

 private:
  std::shared_ptr<Attachment> attachment_;
  std::atomic<Attachment*> attached_{nullptr};
  mutable std::atomic<const Topology*> topology_{nullptr};  ///< `no_topology`: it has none
};

/// For each rank of an intra-communicator, that in MPI_COMM_WORLD; trace::any_peer where it has
/// none there. Empty where there is no world any more.
std::vector<int> ranks_in_world(MPI_Comm comm);

/// The entry of a valid communicator; null where MPI refuses to tell about it.
std::shared_ptr<CommInfo> comm_info(MPI_Comm comm);

/// Others may receive what is sent on a valid communicator by calls that mpress does not see. To be
/// called by all members, before anything is sent; duplicates inherit it.
void carry_no_frames(MPI_Comm comm);

/// The same as comm_info() for a quick look: the entry may be gone after the next call of MPI's or
/// for another communicator.
std::shared_ptr<const CommInfo> glance_at_comm(MPI_Comm comm);

/// While it lives, this thread's duplicates of a communicator get the hints of an MPI_Info in
/// place of the communicator's own.
class DuplicateHints {
 public:
  DuplicateHints(MPI_Comm comm, const Hints& hints);
  DuplicateHints(const DuplicateHints&) = delete;
  DuplicateHints& operator=(const DuplicateHints&) = delete;
  ~DuplicateHints();

  /// What duplicates of `comm` get in its hints' place; null where nothing was given.
  static const Hints* given(MPI_Comm comm);

 private:
  static thread_local const DuplicateHints* innermost_;
  const DuplicateHints* const outer_;
  const MPI_Comm comm_;
  const Hints& hints_;
};

/// While it lives, this thread ends a communicator. What is known of that goes on to hold for what
/// the program's own callbacks do with it behind mpress's, and is gone when MPI returns: nothing
/// would tell any more that it ends.
class EndingComm {
 public:
  explicit EndingComm(const MPI_Comm* comm);
  EndingComm(const EndingComm&) = delete;
  EndingComm& operator=(const EndingComm&) = delete;
  ~EndingComm();

  /// That of `comm`; null where this thread does not end it.
  static EndingComm* of(MPI_Comm comm);

  /// MPI has ended what mpress keeps with it.
  void hold(std::shared_ptr<CommInfo> info) { held_ = std::move(info); }

  /// What is still known of it, which the caller files; null: nothing.
  std::shared_ptr<CommInfo> file() {
    is_filed_ = true;
    return held_;
  }

 private:
  static thread_local EndingComm* innermost_;
  EndingComm* const outer_;
  const MPI_Comm comm_;
  std::shared_ptr<CommInfo> held_;
  bool is_filed_ = false;
};

/// While it lives, this thread's duplicates get nothing of what mpress keeps with a communicator:
/// they are mpress's own.
class PrivateDuplicate {
 public:
  PrivateDuplicate() { ++depth_; }
  PrivateDuplicate(const PrivateDuplicate&) = delete;
  PrivateDuplicate& operator=(const PrivateDuplicate&) = delete;
  ~PrivateDuplicate() { --depth_; }

  static bool is_under_way() { return depth_ > 0; }

 private:
  static thread_local int depth_;
};

}  // namespace mpress::mpi
