// What mpress knows about a communicator.
#pragma once

#include <memory>
#include <vector>

#include "link/mpi.hpp"

namespace mpress::engine {

struct CommInfo {
  MPI_Comm comm = MPI_COMM_NULL;
  bool inter = false;  ///< inter-communicators carry no frames
  bool freed = false;  ///< the handle is no longer valid
  std::vector<int> world_ranks;

  /// The rank in MPI_COMM_WORLD of `rank`; trace::any_peer where it has none there.
  int world_rank(int rank) const;

  /// Calls the communicator's error handler with `code`; returns `code`.
  int raise(int code) const;
};

/// The entry of a valid communicator; null where MPI refuses to tell about it.
std::shared_ptr<CommInfo> comm_info(MPI_Comm comm);

}  // namespace mpress::engine
