#include "engine/peer_hosts.hpp"

#include "mpi/calls.hpp"
#include "mpi/comm_info.hpp"

namespace mpress::engine {

void PeerHosts::find(const link::SegmentAddress& segment) {
  const mpi::Calls& mpi = mpi::calls();
  MPI_Comm here = MPI_COMM_NULL;
  if (mpi.Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here) !=
      MPI_SUCCESS) {
    return;
  }
  int world_size = 0;
  mpi.Comm_size(MPI_COMM_WORLD, &world_size);
  is_here_.resize(static_cast<std::size_t>(world_size));
  const std::vector<int> ranks = mpi::ranks_in_world(here);
  std::vector<link::SegmentAddress> segments(ranks.size());
  mpi.Allgather(&segment, 2, MPI_INT32_T, segments.data(), 2, MPI_INT32_T, here);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    is_here_[static_cast<std::size_t>(ranks[i])] = true;
    ranks_.push_back({ranks[i], segments[i]});
  }
  mpi.Comm_free(&here);
}

}  // namespace mpress::engine
