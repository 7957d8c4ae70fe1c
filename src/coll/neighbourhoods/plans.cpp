#include "coll/neighbourhoods/plans.hpp"

#include <algorithm>
#include <climits>
#include <numeric>
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
    if (is_gather) {  // a message for each rank that is reached
      known.work = {routes.rounds(), routes.messages(), {routes.messages()}};
    } else {
      known.work = {routes.rounds(), routes.blocks(), routes.passes()};
    }
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
    if (pattern == Pattern::allgather) {
      const schedule::GatherTree tree(list_, ports);
      known.work = {tree.rounds(), tree.messages(), {tree.blocks()}};
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
    known.work = {routes.rounds(), routes.messages(), routes.passes()};
    known.way = routed(routes, true);
  });
  return known;
}

std::size_t NeighbourPlans::Work::bytes(std::span<const std::size_t> sizes) const {
  return std::inner_product(passes.begin(), passes.end(), sizes.begin(), std::size_t{0});
}

/// T = messages latency + bytes / rate. Within a host all processes send and receive at once, so a
/// message more takes as long as the first one, where policy/methods has a rank with partners that
/// are idle; and what is packed is copied twice more at each hop. On a network messages of a round
/// overlap by half, and so do what they take to begin and what their bytes take. Nobody knows yet
/// how well blocks compress: half of their bytes count.
bool NeighbourPlans::pays(const Work& packed, const Work& direct,
                          std::span<const std::size_t> sizes, bool encodes,
                          const policy::LinkCosts& costs) const {
  constexpr double packing = 2e-10;
  const auto seconds = [&](const Work& work, double seconds_a_byte) {
    const double alone = static_cast<double>(work.rounds);
    const double all = static_cast<double>(work.messages);
    const double share = encodes && costs.is_network ? 0.5 : 1;
    const double moves = share * static_cast<double>(work.bytes(sizes)) * seconds_a_byte;
    if (!costs.is_network) return costs.round_seconds * all + moves;
    const double begins = costs.round_seconds * (alone + 0.5 * (all - alone));
    return std::max(begins, moves) + 0.5 * std::min(begins, moves);
  };
  const double packed_byte = costs.seconds_a_byte + (costs.is_network ? 0 : packing);
  return seconds(packed, packed_byte) < seconds(direct, costs.seconds_a_byte);
}

// Schedules are made, and priced, as mpress computes (codec/float_environment.hpp).

const schedule::SumSchedule* NeighbourPlans::sums(Pattern pattern, std::size_t bytes, bool encodes,
                                                  const policy::LinkCosts& costs) const {
  return compute([&] { return choose_sums(pattern, bytes, encodes, costs); });
}

const Way& NeighbourPlans::way(Pattern pattern, std::span<const std::size_t> sizes, bool encodes,
                               const policy::LinkCosts& costs) const {
  return *compute([&] { return &choose(pattern, sizes, encodes, costs); });
}

const schedule::SumSchedule* NeighbourPlans::choose_sums(Pattern pattern, std::size_t bytes,
                                                         bool encodes,
                                                         const policy::LinkCosts& costs) const {
  if (hints_.is_reproducible || hints_.algorithm == NeighbourHints::Algorithm::direct ||
      (is_free() && encodes)) {
    return nullptr;
  }
  KnownSums& known = known_[static_cast<std::size_t>(pattern)].sums;
  std::call_once(known.once, [&] {
    const int ports = hints_.ports > 0 ? hints_.ports : INT_MAX;
    const schedule::NeighbourSums sums(list_, pattern == Pattern::allgather, ports);
    known.work = {sums.rounds(), sums.messages(), {sums.vectors()}};
    known.schedule = sums.schedule(rank_);
  });
  if (!is_free()) return &*known.schedule;
  const Work& straight = direct(pattern).work;
  const std::vector<std::size_t> sizes(std::max<std::size_t>(straight.passes.size(), 1), bytes);
  return pays(known.work, straight, sizes, false, costs) ? &*known.schedule : nullptr;
}

const Way& NeighbourPlans::choose(Pattern pattern, std::span<const std::size_t> sizes, bool encodes,
                                  const policy::LinkCosts& costs) const {
  if (sizes.empty() || hints_.algorithm == NeighbourHints::Algorithm::direct) {
    return *direct(pattern).way;
  }
  const Known& combined = packed(pattern);
  if (!is_free() || pays(combined.work, direct(pattern).work, sizes, encodes, costs)) {
    return *combined.way;
  }
  return *direct(pattern).way;
}

}  // namespace mpress::engine
