#include "engine/coll/methods.hpp"

#include <algorithm>
#include <array>

#include "engine/coll/blocks.hpp"
#include "engine/context.hpp"
#include "engine/job.hpp"

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
    case Codec::zfp: return std::min(spec.value / bits, 1.0);
    case Codec::szp: return 0.1;
    case Codec::none: return 1;
    default: return 0.7;
  }
}

}  // namespace

CollectiveCosts agree_on_costs(const Job& job, const Context& world) {
  CollectiveCosts found;
  const auto of = [&](Place place, Peer peer) { return job.policy.link_costs({place, peer}); };
  found.host = {of(Place::host, Peer::same_host), of(Place::host, Peer::other_host)};
  found.linked = {of(Place::device, Peer::linked), of(Place::device, Peer::other_host)};
  found.pinned = {of(Place::device, Peer::pinned), found.linked.between};
  // Rates that were learned are those of all of a host's ranks at once.
  if (job.policy.rate(Peer::other_host) > 0) {
    const auto ranks = static_cast<double>(std::max<std::size_t>(job.peer_hosts.ranks().size(), 1));
    for (policy::CollectiveCosts* costs : {&found.host, &found.linked, &found.pinned}) {
      costs->between.seconds_a_byte /= ranks;
    }
  }
  const std::array all{&found.host.within,    &found.host.between,  &found.linked.within,
                       &found.linked.between, &found.pinned.within, &found.pinned.between};
  std::array<double, 3 * all.size()> numbers;
  for (std::size_t i = 0; i < all.size(); ++i) {
    numbers[3 * i] = all[i]->round_seconds;
    numbers[3 * i + 1] = all[i]->seconds_a_byte;
    numbers[3 * i + 2] = all[i]->crowding;
  }
  mpi::calls().Allreduce(MPI_IN_PLACE, numbers.data(), static_cast<int>(numbers.size()), MPI_DOUBLE,
                         MPI_MAX, world.comm());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i]->round_seconds = numbers[3 * i];
    all[i]->seconds_a_byte = numbers[3 * i + 1];
    all[i]->crowding = numbers[3 * i + 2];
  }
  return found;
}

schedule::Method method_of(const Job& job, schedule::Op op, const CallShape& shape,
                           const Context& context) {
  const CollectiveCosts& costs = job.collective_costs;
  const bool is_linked = shape.on_devices && !context.is_pinned();
  policy::CollectiveCosts here = is_linked          ? costs.linked
                                 : shape.on_devices ? costs.pinned
                                                    : costs.host;
  const bool is_encoded = shape.compresses && shape.spec.codec != Codec::none;
  if (is_linked && is_encoded) here.within = policy::of_payloads(here.within);
  // By host memory payloads find room.
  if (shape.on_devices && !is_linked && is_encoded) here.within.crowding = 1;
  const double wire_per_raw = is_encoded ? expected_wire_per_raw(shape.spec) : 1;
  return context.method_choice()(op, shape.bytes, context.hosts(), here, wire_per_raw,
                                 job.config.algorithms[static_cast<std::size_t>(op)]);
}

}  // namespace mpress::engine
