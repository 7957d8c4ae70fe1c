#include "mpi/open_hosts.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "link/liveness.hpp"
#include "mpi/calls/calls.hpp"
#include "mpi/objects/comm_info.hpp"

namespace mpress::engine {
namespace {

using link::HostMemory;

/// The ranks that share this one's host: MPI's, or a part of those.
MPI_Comm split_by_host(int rank, int ranks_a_host) {
  const mpi::Calls& mpi = mpi::calls();
  MPI_Comm here = MPI_COMM_NULL;
  if (mpi.Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &here) !=
      MPI_SUCCESS) {
    return MPI_COMM_NULL;
  }
  if (ranks_a_host <= 0) return here;
  MPI_Comm part = MPI_COMM_NULL;
  mpi.Comm_split(here, rank / ranks_a_host, rank, &part);
  mpi.Comm_free(&here);
  return part;
}

/// Shares this rank's sheet and maps those of the others; all of a host reach each other, or none
/// counts as a neighbour. Collective over `here`.
std::vector<Hosts::Neighbour> exchange_sheets(MPI_Comm here, int rank,
                                              const HostMemory::Nonce& nonce) {
  const mpi::Calls& mpi = mpi::calls();
  HostMemory own = HostMemory::create(nonce, rank, Hosts::sheet_bytes);
  const std::vector<int> ranks = mpi::ranks_in_world(here);
  struct Card {
    HostMemory::Address address;
    link::ProcessId process;
  };
  const Card card{own.address(), link::own_process()};
  std::vector<Card> cards(ranks.size());
  mpi.Allgather(&card, sizeof card, MPI_BYTE, cards.data(), sizeof card, MPI_BYTE, here);
  std::vector<Hosts::Neighbour> found;
  int all_found = 1;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    HostMemory memory =
        ranks[i] == rank ? std::move(own)
                         : HostMemory::open(cards[i].address, nonce, ranks[i], Hosts::sheet_bytes);
    all_found = all_found && memory;
    found.push_back({ranks[i], cards[i].process, std::move(memory)});
  }
  mpi.Allreduce(MPI_IN_PLACE, &all_found, 1, MPI_INT, MPI_MIN, here);
  if (!all_found) {
    std::erase_if(found, [&](const Hosts::Neighbour& other) { return other.rank != rank; });
  }
  return found;
}

}  // namespace

void open_hosts(Hosts& hosts, const HostMemory::Nonce& nonce, int ranks_a_host) {
  const mpi::Calls& mpi = mpi::calls();
  int rank = 0, size = 0;
  mpi.Comm_rank(MPI_COMM_WORLD, &rank);
  mpi.Comm_size(MPI_COMM_WORLD, &size);
  std::vector<Hosts::Neighbour> neighbours;
  MPI_Comm here = split_by_host(rank, ranks_a_host);
  if (here != MPI_COMM_NULL) {
    neighbours = exchange_sheets(here, rank, nonce);
    mpi.Comm_free(&here);
  }
  int leader = rank;
  for (const Hosts::Neighbour& other : neighbours) leader = std::min(leader, other.rank);
  std::vector<int> leaders(static_cast<std::size_t>(size));
  mpi.Allgather(&leader, 1, MPI_INT, leaders.data(), 1, MPI_INT, MPI_COMM_WORLD);
  hosts.open(rank, std::move(leaders), std::move(neighbours));
}

}  // namespace mpress::engine
