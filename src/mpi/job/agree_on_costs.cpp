#include "mpi/job/agree_on_costs.hpp"

#include <algorithm>
#include <vector>

#include "codec/float_environment.hpp"
#include "mpi/job/job.hpp"
#include "mpi/job/teams.hpp"

namespace mpress::engine {

using policy::LinkCosts;
using policy::Peer;
using policy::Place;

policy::AgreedCosts agree_on_costs(const Job& job, const Team& world) {
  policy::AgreedCosts found;
  const auto of = [&](Place place, Peer peer) { return job.policy.links().rounds({place, peer}); };
  found.host = {of(Place::host, Peer::same_host), of(Place::host, Peer::other_host)};
  std::vector<policy::CollectiveCosts*> all{&found.host};
  const LinkCosts between_devices = of(Place::device, Peer::other_host);
  for (std::size_t at = 0; at < found.devices.size(); ++at) {
    const Peer peer = policy::peer_by(link::kind_at(at));
    all.push_back(&(found.devices[at] = {of(Place::device, peer), between_devices}));
  }
  // Rates that were learned are those of all of a host's ranks at once.
  if (job.policy.links().rate(Peer::other_host) != 0) {
    const std::size_t ranks = std::max<std::size_t>(job.endpoints.ranks_here(), 1);
    compute([&] {
      for (auto* costs : all) costs->between.seconds_a_byte /= static_cast<double>(ranks);
    });
  }
  std::vector<double*> agreed;
  std::vector<double> worst;
  for (policy::CollectiveCosts* const costs : all) {
    for (LinkCosts* const link : {&costs->within, &costs->between}) {
      for (double* const number : {&link->round_seconds, &link->seconds_a_byte, &link->crowding}) {
        agreed.push_back(number);
        worst.push_back(*number);
      }
    }
  }
  mpi::calls().Allreduce(MPI_IN_PLACE, worst.data(), static_cast<int>(worst.size()), MPI_DOUBLE,
                         MPI_MAX, comm_of(world));
  for (std::size_t i = 0; i < worst.size(); ++i) *agreed[i] = worst[i];
  return found;
}

}  // namespace mpress::engine
