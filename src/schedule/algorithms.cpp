#include "schedule/algorithms.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "schedule/builder.hpp"
#include "schedule/moves/bruck.hpp"
#include "schedule/moves/hierarchical.hpp"
#include "schedule/moves/knomial.hpp"
#include "schedule/moves/linear.hpp"
#include "schedule/moves/pairwise.hpp"
#include "schedule/moves/recursive.hpp"
#include "schedule/moves/ring.hpp"
#include "schedule/moves/scatter_allgather.hpp"
#include "schedule/moves/tree.hpp"

namespace mpress::schedule {
namespace {

static_assert(std::size(algorithm_names) == static_cast<std::size_t>(Algorithm::count_));

/// Trees with few rounds within hosts: all of a host have it from its first in one.
Radices radices_of(const Hosts& hosts) { return {2, std::max(hosts.most_members(), 2)}; }

bool turns(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::linear:
    case Algorithm::chain:
    case Algorithm::ring:
    case Algorithm::two_shot: return false;
    default: return true;
  }
}

/// Of n ranks that all reach each other alike.
struct FlatWork {
  int rounds;
  double path;
  int at_once = 1;
};

FlatWork flat_work(const Method& method, Op op, int n, bool is_shared) {
  const int others = n - 1;
  const int s = method.segments;
  const int window = std::min(method.window, others);
  const int levels = digits(n, 2);
  switch (method.algorithm) {
    case Algorithm::linear:
      if (op == Op::bcast) return {s, is_shared ? s : 1.0 * s * others, others};
      return {divided_up(others, window), 1.0 * others, window};
    case Algorithm::binomial:
      if (op == Op::bcast) return {s * levels, 1.0 * s * levels};
      return {levels, 1.0 * others};
    case Algorithm::chain: return {n + s - 2, 1.0 * (n + s - 2)};
    case Algorithm::scatter_ring: return {levels + others, 2.0 * others};
    case Algorithm::scatter_doubling: return {2 * levels, 2.0 * others};
    case Algorithm::two_shot: {
      const int turns = divided_up(s, others);
      return {turns + (n > 2), 1.0 * turns * others + (n - 2), others};
    }
    case Algorithm::scattered: {
      const int rounds = divided_up(others, window);
      return {rounds, 1.0 * others, window};
    }
    case Algorithm::ring:
    case Algorithm::pairwise: return {others, 1.0 * others};
    case Algorithm::doubling: return {levels, 1.0 * others};
    case Algorithm::bruck: {
      if (op == Op::allgather) return {levels, 1.0 * others};
      double blocks = 0;
      for (int v = 0; v < n; ++v) blocks += __builtin_popcount(static_cast<unsigned>(v));
      return {levels, blocks};
    }
    case Algorithm::none:
    case Algorithm::by_host:
    case Algorithm::one_shot:
    case Algorithm::one_kernel:
    case Algorithm::combining:
    case Algorithm::count_: break;
  }
  return {0, 0};
}

/// Of h hosts, with m ranks at most.
Work mixed_work(const Method& method, Op op, const Hosts& hosts, bool is_shared) {
  const int n = hosts.ranks();
  const int h = hosts.count();
  const int m = hosts.most_members();
  const int s = method.segments;
  const double to_members = is_shared ? 1 : m - 1;
  const auto steps = [&](int window, double within, double between) {
    const int rounds = divided_up(n - 1, window);
    const int rounds_between = std::min(rounds, divided_up(n - m, window));
    return Work{rounds - rounds_between, rounds_between, within, between, window};
  };
  switch (method.algorithm) {
    case Algorithm::binomial: {
      const int levels = digits(h, 2);
      if (op == Op::bcast) return {1, s * levels, s * to_members, 1.0 * s * levels, m - 1};
      return {1, levels, m - 1.0, 1.0 * (n - m), 1};
    }
    case Algorithm::two_shot: {
      const int turns = divided_up(s, h - 1);
      const double passed_on = s + (h - 1) + (turns > 1 ? h - 2 : 0);
      return {1, turns + (h > 2), passed_on * to_members, 1.0 * turns * (h - 1) + (h - 2),
              std::max(h, m) - 1};
    }
    case Algorithm::linear: return steps(std::min(method.window, n - 1), m - 1.0, 1.0 * (n - m));
    case Algorithm::by_host: return {1, h - 1, 1.0 * h * (m - 1), 1.0 * m * (h - 1), m};
    case Algorithm::scattered:
    case Algorithm::pairwise: {
      const bool is_by_steps = method.algorithm == Algorithm::pairwise;
      return steps(is_by_steps ? 1 : std::min(method.window, n - 1), m - 1.0, 1.0 * m * (n - m));
    }
    default: break;
  }
  return {};
}

}  // namespace

std::optional<Algorithm> algorithm_of(std::string_view name) {
  for (std::size_t i = 1; i < std::size(algorithm_names); ++i)
    if (name == algorithm_names[i]) return static_cast<Algorithm>(i);
  return std::nullopt;
}

std::optional<Op> op_of(std::string_view name) {
  for (std::size_t i = 0; i < op_count; ++i)
    if (name == op_names[i]) return static_cast<Op>(i);
  return std::nullopt;
}

std::vector<Algorithm> all_algorithms_of(Op op) {
  using enum Algorithm;
  switch (op) {
    case Op::bcast: return {linear, binomial, chain, scatter_ring, scatter_doubling, two_shot};
    case Op::scatter:
    case Op::gather: return {linear, binomial};
    case Op::allgather: return {scattered, ring, doubling, bruck, by_host};
    case Op::alltoall: break;
  }
  return {scattered, bruck, pairwise};
}

bool passes_on_others(Algorithm algorithm, Op op) {
  if (op == Op::scatter || op == Op::gather) return algorithm == Algorithm::binomial;
  return op == Op::alltoall && algorithm == Algorithm::bruck;
}

std::vector<Algorithm> run_only(std::vector<Algorithm> algorithms, Op op) {
  std::erase_if(algorithms, [op](Algorithm one) { return passes_on_others(one, op); });
  return algorithms;
}

std::vector<Algorithm> algorithms_of(Op op, const Hosts& hosts) {
  const bool is_mixed = hosts.is_mixed();
  const bool is_power = is_power_of_two(hosts.ranks());
  std::vector<Algorithm> found = all_algorithms_of(op);
  std::erase_if(found, [&](Algorithm algorithm) {
    switch (algorithm) {
      case Algorithm::linear:
        if (op != Op::bcast) return false;
        [[fallthrough]];
      case Algorithm::chain:
      case Algorithm::scatter_ring:
      case Algorithm::ring:
      case Algorithm::bruck: return is_mixed;
      case Algorithm::scatter_doubling:
      case Algorithm::doubling: return is_mixed || !is_power;
      case Algorithm::by_host: return !is_mixed;
      case Algorithm::scattered: return is_mixed && op == Op::allgather;
      default: return false;
    }
  });
  return found;
}

Schedule make(const Method& method, const Task& task, int rank, const Hosts& hosts) {
  const bool is_mixed = hosts.is_mixed();
  const std::vector<Algorithm> serving = algorithms_of(task.op, hosts);
  if (std::find(serving.begin(), serving.end(), method.algorithm) == serving.end())
    throw std::invalid_argument(std::string("method.algorithm is ") + name(method.algorithm) +
                                ", which is not for this collective on these hosts");
  const Radices radices = radices_of(hosts);
  switch (method.algorithm) {
    case Algorithm::linear:
      if (task.op == Op::bcast) return linear_bcast(task, rank);
      return task.op == Op::scatter ? linear_scatter(task, rank, method.window)
                                    : linear_gather(task, rank, method.window);
    case Algorithm::binomial:
      if (task.op == Op::bcast)
        return is_mixed ? hierarchical_bcast(task, rank, hosts, radices)
                        : binomial_bcast(task, rank);
      if (task.op == Op::scatter)
        return is_mixed ? hierarchical_scatter(task, rank, hosts, radices)
                        : binomial_scatter(task, rank);
      return is_mixed ? hierarchical_gather(task, rank, hosts, radices)
                      : binomial_gather(task, rank);
    case Algorithm::chain: return chain_bcast(task, rank);
    case Algorithm::scatter_ring: return scatter_ring_bcast(task, rank);
    case Algorithm::scatter_doubling: return scatter_recursive_doubling_bcast(task, rank);
    case Algorithm::two_shot:
      return is_mixed ? hierarchical_two_shot_bcast(task, rank, hosts) : two_shot_bcast(task, rank);
    case Algorithm::scattered:
      if (task.op == Op::allgather) return scattered_allgather(task, rank, method.window);
      return is_mixed ? hierarchical_alltoall(task, rank, hosts, method.window)
                      : scattered_alltoall(task, rank, method.window);
    case Algorithm::ring: return ring_allgather(task, rank);
    case Algorithm::doubling: return recursive_doubling_allgather(task, rank);
    case Algorithm::bruck:
      return task.op == Op::allgather ? bruck_allgather(task, rank) : bruck_alltoall(task, rank);
    case Algorithm::by_host: return hierarchical_allgather(task, rank, hosts);
    case Algorithm::pairwise:
      return is_mixed ? hierarchical_alltoall(task, rank, hosts, 1) : pairwise_alltoall(task, rank);
    case Algorithm::none:
    case Algorithm::one_shot:  // without a schedule
    case Algorithm::one_kernel:
    case Algorithm::combining:
    case Algorithm::count_: break;
  }
  return {};
}

Work work(const Method& method, Op op, const Hosts& hosts, bool is_shared) {
  if (hosts.ranks() == 1) return {};
  if (hosts.is_mixed()) {
    Work work = mixed_work(method, op, hosts, is_shared);
    work.turns = turns(method.algorithm);
    return work;
  }
  const bool is_within = hosts.count() == 1;
  const FlatWork flat = flat_work(method, op, hosts.ranks(), is_shared && is_within);
  const bool has_turns = turns(method.algorithm);
  return is_within ? Work{flat.rounds, 0, flat.path, 0, flat.at_once, has_turns}
                   : Work{0, flat.rounds, 0, flat.path, flat.at_once, has_turns};
}

}  // namespace mpress::schedule
