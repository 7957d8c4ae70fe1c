#include "engine/peer_hosts.hpp"

#include "engine/comm_info.hpp"
#include "link/mpi.hpp"

namespace mpress::engine {

void PeerHosts::find() {
  const link::MpiCalls& mpi = link::mpi();
  MPI_Comm here = MPI_COMM_NULL;
  if (mpi.Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here) !=
      MPI_SUCCESS) {
    return;
  }
  int world_size = 0;
  mpi.Comm_size(MPI_COMM_WORLD, &world_size);
  is_here_.resize(static_cast<std::size_t>(world_size));
  for (const int rank : ranks_in_world(here)) is_here_[static_cast<std::size_t>(rank)] = true;
  mpi.Comm_free(&here);
}

}  // namespace mpress::engine
