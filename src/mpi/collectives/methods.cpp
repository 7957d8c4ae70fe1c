#include "mpi/collectives/methods.hpp"

#include <algorithm>
#include <vector>

#include "codec/float_environment.hpp"
#include "mpi/collectives/blocks/blocks.hpp"
#include "mpi/job/job.hpp"
#include "mpi/job/teams.hpp"

namespace mpress::engine {
namespace {

using policy::LinkCosts;
using policy::Path;
using policy::Peer;
using policy::Place;

/// What is expected of a codec before anybody has seen the data.
double expected_wire_per_raw(const Spec& spec) {
  constexpr double bits = 32;
  switch (spec.codec) {
    case Codec::zfp: return compute([&] { return std::min(spec.value / bits, 1.0); });
    case Codec::szp: return 0.1;
    case Codec::none: return 1;
    default: return 0.7;
  }
}

}  // namespace

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

schedule::Method method_of(const Job& job, schedule::Op op, const CallShape& shape,
                           const Team& team, double* seconds) {
  const policy::AgreedCosts& costs = job.agreed_costs;
  const bool is_encoded = shape.compresses && shape.spec.codec != Codec::none;
  policy::CollectiveCosts here = costs.host;
  if (shape.on_devices) {
    const std::size_t at = link::position(team.modes().between_devices());
    here = costs.devices[at];
    if (is_encoded && at < link::count_between_devices) {
      if (link::between_devices[at].is_through_host) {
        here.within.crowding = 1;  // payloads find room
      } else {
        here.within = compute([&] { return policy::of_payloads(here.within); });
      }
    }
  }
  const double wire_per_raw = is_encoded ? expected_wire_per_raw(shape.spec) : 1;
  const schedule::Method method =
      team.modes().method_choice()(op, shape.bytes, team.hosts(), here, wire_per_raw,
                                   job.config.algorithms[static_cast<std::size_t>(op)]);
  if (seconds) {
    *seconds = compute([&] {
      const double bytes = wire_per_raw * static_cast<double>(shape.bytes);
      return policy::collective_seconds(method, op, bytes, team.hosts(), here);
    });
  }
  return method;
}

}  // namespace mpress::engine
