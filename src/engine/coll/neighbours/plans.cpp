#include "engine/coll/neighbours/plans.hpp"

#include <algorithm>
#include <climits>
#include <utility>

#include "codec/float_environment.hpp"
#include "schedule/neighbourhoods/gather_tree.hpp"
#include "schedule/neighbourhoods/ring.hpp"
#include "schedule/neighbourhoods/routes.hpp"

namespace mpress::engine {

using schedule::Neighbourhood;
using schedule::Routes;

std::uint64_t NeighbourHints::hash() const {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: the same on all ranks
  for (const int one :
       {static_cast<int>(algorithm), ports, int{is_reproducible}, int{has_uniform_sizes}}) {
    hash = (hash ^ static_cast<unsigned>(one)) * 0x100000001b3;
  }
  return hash;
}

NeighbourPlans::NeighbourPlans(Neighbourhood list, int rank, NeighbourHints hints)
    : list_(std::move(list)),
      rank_(rank),
      hints_(hints),
      coordinates_(static_cast<std::size_t>(list_.dimensions())) {
  list_.grid().coordinates(rank, coordinates_);
  for (int i = 0; i < list_.count(); ++i)
    if (list_.is_self(i)) own_.push_back(i);
}

Way NeighbourPlans::routed(const Routes& routes, bool is_packed) const {
  schedule::Schedule schedule = routes.schedule(rank_);
  auto passages = schedule::Passages::of_alltoall(list_, schedule, coordinates_);
  return {is_packed, std::move(schedule), std::move(passages)};
}

Way NeighbourPlans::gathered(schedule::Schedule schedule, bool is_packed) const {
  auto passages = schedule::Passages::of_gather(list_, schedule, coordinates_);
  return {is_packed, std::move(schedule), std::move(passages)};
}

const NeighbourPlans::Known& NeighbourPlans::direct(Pattern pattern) const {
  Known& known = known_[static_cast<std::size_t>(pattern)].direct;
  std::call_once(known.once, [&] {
    const int ports = hints_.ports > 0 ? hints_.ports : INT_MAX;
    const Routes routes = Routes::direct(list_, ports);
    const bool is_gather = pattern == Pattern::allgather;
    // Each block is a message; of an all-gather one for each rank that is reached.
    const std::size_t messages = is_gather ? routes.messages() : routes.blocks();
    known.work = {routes.rounds(), messages, messages};
    known.way = is_gather ? gathered(schedule::direct_gather(list_, rank_, ports), false)
                          : routed(routes, false);
  });
  return known;
}

const NeighbourPlans::Known& NeighbourPlans::packed(Pattern pattern) const {
  Known& known = known_[static_cast<std::size_t>(pattern)].packed;
  std::call_once(known.once, [&] {
    using enum NeighbourHints::Algorithm;
    const int ports = hints_.ports > 0 ? hints_.ports : INT_MAX;
    const int base = hints_.ports > 0 ? hints_.ports + 1 : 2;
    const auto note = [&](const auto& combined) {
      known.work = {combined.rounds(), combined.messages(), combined.blocks()};
    };
    if (pattern == Pattern::allgather) {
      const schedule::GatherTree tree(list_, ports);
      note(tree);
      known.way = gathered(tree.schedule(rank_), true);
      return;
    }
    if (hints_.algorithm == ring) {
      schedule::Schedule schedule = schedule::ring_alltoall(list_, rank_, base);
      auto passages = schedule::Passages::of_alltoall(list_, schedule, coordinates_);
      known.way = Way{true, std::move(schedule), std::move(passages)};
      return;
    }
    const Routes routes = hints_.algorithm == digits  ? Routes::digits(list_, ports, base)
                          : hints_.algorithm == lines ? Routes::lines(list_, ports, base)
                                                      : Routes::combining(list_, ports);
    note(routes);
    known.way = routed(routes, true);
  });
  return known;
}

/// T = messages latency + blocks bytes / rate. As all processes send and receive at once, a message
/// more takes a process as long as the first one, where policy/methods has a rank with partners
/// that are idle. A network moves bytes meanwhile: of the two the longer one counts. What is packed
/// is copied twice more at each hop.
bool NeighbourPlans::pays(const Work& packed, const Work& direct, std::size_t bytes,
                          const policy::LinkCosts& costs) const {
  constexpr double packing = 2e-10;
  const auto seconds = [&](const Work& work, double seconds_a_byte) {
    const double begins = costs.round_seconds * static_cast<double>(work.messages);
    const double moves = static_cast<double>(work.blocks * bytes) * seconds_a_byte;
    return costs.is_network ? std::max(begins, moves) : begins + moves;
  };
  return seconds(packed, costs.seconds_a_byte + packing) < seconds(direct, costs.seconds_a_byte);
}

// Schedules are made, and priced, as mpress computes (codec/float_environment.hpp).

const schedule::SumSchedule* NeighbourPlans::sums(Pattern pattern, std::size_t bytes, bool encodes,
                                                  const policy::LinkCosts& costs) const {
  return compute([&] { return choose_sums(pattern, bytes, encodes, costs); });
}

const Way& NeighbourPlans::way(Pattern pattern, std::optional<std::size_t> bytes, bool encodes,
                               const policy::LinkCosts& costs) const {
  return *compute([&] { return &choose(pattern, bytes, encodes, costs); });
}

const schedule::SumSchedule* NeighbourPlans::choose_sums(Pattern pattern, std::size_t bytes,
                                                         bool encodes,
                                                         const policy::LinkCosts& costs) const {
  const bool is_free = hints_.algorithm == NeighbourHints::Algorithm::automatic;
  if (hints_.is_reproducible || hints_.algorithm == NeighbourHints::Algorithm::direct ||
      (is_free && encodes)) {
    return nullptr;
  }
  KnownSums& known = known_[static_cast<std::size_t>(pattern)].sums;
  std::call_once(known.once, [&] {
    const int ports = hints_.ports > 0 ? hints_.ports : INT_MAX;
    const schedule::NeighbourSums sums(list_, pattern == Pattern::allgather, ports);
    known.work = {sums.rounds(), sums.messages(), sums.vectors()};
    known.schedule = sums.schedule(rank_);
  });
  if (is_free && !pays(known.work, direct(pattern).work, bytes, costs)) return nullptr;
  return &*known.schedule;
}

const Way& NeighbourPlans::choose(Pattern pattern, std::optional<std::size_t> bytes, bool encodes,
                                  const policy::LinkCosts& costs) const {
  const bool is_free = hints_.algorithm == NeighbourHints::Algorithm::automatic;
  if (!bytes || hints_.algorithm == NeighbourHints::Algorithm::direct || (is_free && encodes)) {
    return *direct(pattern).way;
  }
  const Known& combined = packed(pattern);
  if (!is_free || pays(combined.work, direct(pattern).work, *bytes, costs)) return *combined.way;
  return *direct(pattern).way;
}

}  // namespace mpress::engine
