#include "mpi/open_links.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "config/machine.hpp"
#include "core/backoff.hpp"
#include "link/liveness.hpp"
#include "mpi/job/job.hpp"
#include "mpi/objects/comm_info.hpp"
#include "policy/chunks.hpp"
#include "wire/frame.hpp"

namespace mpress::engine {
namespace {

/// The links that MPRESS_LINK names; `auto`: all. A paced link stands for another network.
bool is_wanted(const Job& job, const link::Attributes& about) {
  const std::string& link = job.config.link;
  return job.chunks.is_open() && !job.pacer.active() && (link == about.name || link == "auto");
}

/// A rank of this host, and where the others find what it shares.
struct LinkCard {
  link::RankProcess rank;
  Links::Addresses addresses;
};

/// The cards of this host's ranks, in an order that all of them share. Collective over
/// MPI_COMM_WORLD.
std::vector<LinkCard> exchange_cards(const Links::Addresses& addresses) {
  const mpi::Calls& mpi = mpi::calls();
  MPI_Comm here = MPI_COMM_NULL;
  if (mpi.Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here) !=
      MPI_SUCCESS) {
    return {};
  }
  const std::vector<int> ranks = mpi::ranks_in_world(here);
  int position = 0;
  mpi.Comm_rank(here, &position);
  const LinkCard own{{ranks[static_cast<std::size_t>(position)], link::own_process()}, addresses};
  std::vector<LinkCard> all(ranks.size());
  mpi.Allgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, here);
  mpi.Comm_free(&here);
  return all;
}

}  // namespace

std::size_t least_by_links(const Job& job) {
  return link::named(job.config.link) ? wire::min_frame_bytes
                                      : job.links.least_bytes_between_devices;
}

void open_links(Job& job) {
  const auto wants = [&](const link::Attributes& about) { return is_wanted(job, about); };
  const std::vector<LinkCard> here = exchange_cards(job.links.open(job.nonce, job.rank, wants));
  std::vector<link::RankProcess> ranks;
  std::vector<Links::Addresses> addresses;
  for (const LinkCard& one : here) {
    ranks.push_back(one.rank);
    addresses.push_back(one.addresses);
  }
  job.endpoints.open(job.size, ranks);
  job.devices.shares_nothing = std::ranges::any_of(link::between_devices, wants) &&
                               !job.links.has_open_device_link() && job.endpoints.ranks_here() > 1;
  Backoff::set_oversubscribed(job.endpoints.are_oversubscribed());
  job.links.set_ranks(ranks, addresses, {job.config.pool_limit, !job.config.is_pool_limit_set});
  job.links.held_by_teams.set_limit(job.config.pool_limit / 2);  // the rest is for messages
  job.host_window = job.config.host_window;
  if (job.host_window == 0 && job.links.has_open_device_link()) {
    job.host_window = policy::host_window(last_level_cache());
  }
  job.links.least_bytes_between_devices = least_by_links(job);
  // By way of the host a reduction of less takes twice as long as MPI's, which is staged there.
  constexpr std::size_t least_by_host = 32 * 1024;
  const link::Attributes* const chosen = link::named(job.config.link);
  if (job.config.force || (chosen && !chosen->is_through_host)) {
    job.least_reduced_bytes = 4 * job.links.least_bytes_between_devices;
  } else if (chosen) {
    job.least_reduced_bytes = least_by_host;
  }
}

}  // namespace mpress::engine
