// What mpress knows about a communicator.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "mpi/calls.hpp"
#include "mpi/hints.hpp"
#include "policy/ratios.hpp"

namespace mpress::mpi {

struct CommInfo {
  MPI_Comm comm = MPI_COMM_NULL;
  bool inter = false;              ///< inter-communicators carry no frames
  std::atomic<bool> freed{false};  ///< the handle is no longer valid
  std::vector<int> world_ranks;
  CommHints hints;  ///< a duplicate inherits them
  /// What the policy has learned of its messages.
  const std::shared_ptr<policy::Ratios> ratios = std::make_shared<policy::Ratios>();

  /// The rank in MPI_COMM_WORLD of `rank`; trace::any_peer where it has none there.
  int world_rank(int rank) const;

  /// Calls the communicator's error handler with `code`; returns `code`.
  int raise(int code) const;
};

/// For each rank of an intra-communicator, that in MPI_COMM_WORLD; trace::any_peer where it has
/// none there. Empty where there is no world any more.
std::vector<int> ranks_in_world(MPI_Comm comm);

/// The entry of a valid communicator; null where MPI refuses to tell about it.
std::shared_ptr<CommInfo> comm_info(MPI_Comm comm);

/// The same for a quick look: the entry may be gone after the next call of MPI's or for another
/// communicator.
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

}  // namespace mpress::mpi
