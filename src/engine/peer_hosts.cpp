#include "engine/peer_hosts.hpp"

#include <numeric>

#include "link/mpi.hpp"

namespace mpress::engine {

void PeerHosts::find() {
  const link::MpiCalls& mpi = link::mpi();
  MPI_Comm here = MPI_COMM_NULL;
  if (mpi.Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here) !=
      MPI_SUCCESS) {
    return;
  }
  MPI_Group group = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
  int size = 0, world_size = 0;
  mpi.Comm_size(here, &size);
  mpi.Comm_size(MPI_COMM_WORLD, &world_size);
  mpi.Comm_group(here, &group);
  mpi.Comm_group(MPI_COMM_WORLD, &world);
  std::vector<int> ranks(static_cast<std::size_t>(size)), world_ranks(ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  mpi.Group_translate_ranks(group, size, ranks.data(), world, world_ranks.data());
  is_here_.resize(static_cast<std::size_t>(world_size));
  for (const int rank : world_ranks) is_here_[static_cast<std::size_t>(rank)] = true;
  mpi.Group_free(&group);
  mpi.Group_free(&world);
  mpi.Comm_free(&here);
}

}  // namespace mpress::engine
