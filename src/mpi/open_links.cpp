#include "mpi/open_links.hpp"

#include <string>
#include <utility>
#include <vector>

#include "config/machine.hpp"
#include "core/backoff.hpp"
#include "engine/job/job.hpp"
#include "link/liveness.hpp"
#include "mpi/objects/comm_info.hpp"
#include "policy/chunks.hpp"
#include "wire/frame.hpp"

namespace mpress::engine {
namespace {

/// The link of MPRESS_LINK that is called so; the host link serves GPUs that the peer link does not
/// reach, too. A paced link stands for another network.
bool wants_link(const Job& job, const char* name) {
  const std::string& link = job.config.link;
  return job.chunks.is_open() && !job.pacer.active() && (link == name || link == "auto");
}

/// A rank of this host, and where it has the memory that its links share with the others.
struct LinkCard {
  int rank;
  link::HostMemory::Address segment;
  link::HostMemory::Address on_host;
  link::ProcessId process;
};

/// The cards of this host's ranks, in an order that all of them share. Collective over
/// MPI_COMM_WORLD.
std::vector<LinkCard> exchange_cards(const link::HostMemory::Address& segment,
                                     const link::HostMemory::Address& on_host) {
  const mpi::Calls& mpi = mpi::calls();
  MPI_Comm here = MPI_COMM_NULL;
  if (mpi.Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here) !=
      MPI_SUCCESS) {
    return {};
  }
  const std::vector<int> ranks = mpi::ranks_in_world(here);
  int position = 0;
  mpi.Comm_rank(here, &position);
  const LinkCard own{ranks[static_cast<std::size_t>(position)], segment, on_host,
                     link::own_process()};
  std::vector<LinkCard> all(ranks.size());
  mpi.Allgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, here);
  mpi.Comm_free(&here);
  return all;
}

}  // namespace

std::size_t least_by_links(const Job& job) {
  const bool is_chosen = job.config.link == "peer" || job.config.link == "host";
  return is_chosen ? wire::min_frame_bytes : job.links.least_bytes_between_devices;
}

void open_links(Job& job) {
  const auto segment = job.links.peer.open(job.nonce, job.rank, wants_link(job, "peer"));
  const auto on_host = job.links.host.open(job.nonce, job.rank, wants_link(job, "host"));
  const std::vector<LinkCard> here = exchange_cards(segment, on_host);
  std::vector<Endpoints::Neighbour> processes;
  std::vector<link::HostRank> peer_ranks, host_ranks;
  for (const LinkCard& one : here) {
    processes.push_back({one.rank, one.process});
    peer_ranks.push_back({one.rank, one.segment});
    host_ranks.push_back({one.rank, one.on_host});
  }
  job.endpoints.open(job.size, std::move(processes));
  job.has_nothing_to_share = (wants_link(job, "peer") || wants_link(job, "host")) &&
                             segment.file < 0 && on_host.file < 0 && job.endpoints.ranks_here() > 1;
  Backoff::set_crowded(job.endpoints.are_oversubscribed());
  job.links.host.set_ranks(host_ranks, job.config.pool_limit);
  job.kept_on_host.set_limit(job.config.pool_limit / 2);  // the rest is for messages
  job.host_window = job.config.host_window;
  if (job.host_window == 0 && job.links.host.is_open()) {
    job.host_window = policy::host_window(last_level_cache());
  }
  if (on_host.file >= 0) job.links.peer.set_other_way("by way of the host's memory");
  job.links.peer.set_ranks(peer_ranks, job.config.pool_limit, !job.config.is_pool_limit_set);
  job.links.least_bytes_between_devices = least_by_links(job);
  // By way of the host a reduction of less takes twice as long as MPI's, which is staged there.
  constexpr std::size_t least_by_host = 32 * 1024;
  if (job.config.link == "peer" || job.config.force) {
    job.least_reduced_bytes = 4 * job.links.least_bytes_between_devices;
  } else if (job.config.link == "host") {
    job.least_reduced_bytes = least_by_host;
  }
}

}  // namespace mpress::engine
