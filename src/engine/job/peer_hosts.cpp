#include "engine/job/peer_hosts.hpp"

#include <sched.h>
#include <unistd.h>

#include "mpi/calls/calls.hpp"
#include "mpi/objects/comm_info.hpp"

namespace mpress::engine {

void PeerHosts::find(const link::SegmentAddress& segment,
                     const link::HostMemory::Address& on_host) {
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
  struct Card {
    link::SegmentAddress segment;
    link::HostMemory::Address on_host;
    link::ProcessId process;
  };
  const Card own{segment, on_host, link::own_process()};
  std::vector<Card> cards(ranks.size());
  mpi.Allgather(&own, sizeof own, MPI_BYTE, cards.data(), sizeof own, MPI_BYTE, here);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    is_here_[static_cast<std::size_t>(ranks[i])] = true;
    ranks_.push_back({ranks[i], cards[i].segment});
    host_ranks_.push_back({ranks[i], cards[i].on_host});
    processes_.push_back(cards[i].process);
  }
  mpi.Comm_free(&here);
}

bool PeerHosts::is_crowded() const {
  cpu_set_t set;
  const int allowed = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
  // Launchers bind ranks to a processor each where there are enough.
  const long processors = allowed > 1 ? allowed : ::sysconf(_SC_NPROCESSORS_ONLN);
  return static_cast<long>(ranks_.size()) > processors;
}

int PeerHosts::find_ended() const {
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (!link::is_alive(processes_[i])) return ranks_[i].rank;
  }
  return -1;
}

}  // namespace mpress::engine
