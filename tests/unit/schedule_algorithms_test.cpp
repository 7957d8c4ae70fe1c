// The algorithms by name: each of those that serve a collective moves all blocks, and is as much
// work as it says, counted round by round in the schedules of all ranks.

#include <cmath>
#include <map>
#include <set>
#include <stdexcept>

#include "schedule/algorithms.hpp"
#include "schedule/moves/hierarchical.hpp"
#include "schedule_cases.hpp"

using namespace schedule_cases;
using schedule_simulator::index;
using schedule_simulator::Plan;
using schedule_simulator::Verifier;

namespace {

namespace named = mpress::schedule;
using named::Method;

constexpr Op ops[] = {Op::bcast, Op::scatter, Op::gather, Op::allgather, Op::alltoall};

Hosts even_hosts(int count, int members) {
  std::vector<int> host_of(index(count * members));
  for (std::size_t rank = 0; rank < host_of.size(); ++rank)
    host_of[rank] = static_cast<int>(rank) / members;
  return Hosts(host_of);
}

/// Sums over the rounds of the most that anybody sends, or receives.
struct Counted {
  double within = 0;
  double between = 0;
};

Counted count(const Plan& plan, const Hosts& hosts, int rounds, bool is_shared) {
  Counted sum;
  for (int round = 0; round < rounds; ++round) {
    std::map<int, std::size_t> in, out, host_in, host_out;
    for (int rank = 0; rank < hosts.ranks(); ++rank) {
      const Schedule& schedule = plan.ranks[index(rank)];
      std::set<Block> written;
      for (const Transfer& transfer : schedule.sends) {
        if (transfer.round != round) continue;
        if (hosts.host(rank) != hosts.host(transfer.peer)) {
          host_out[hosts.host(rank)] += transfer.count;
          host_in[hosts.host(transfer.peer)] += transfer.count;
          continue;
        }
        in[transfer.peer] += transfer.count;
        for (const Block block : schedule.blocks_of(transfer))
          if (written.insert(block).second || !is_shared) ++out[rank];
      }
    }
    const auto most = [](const std::map<int, std::size_t>& a, const std::map<int, std::size_t>& b) {
      std::size_t most = 0;
      for (const auto* counts : {&a, &b})
        for (const auto& [who, blocks] : *counts) most = std::max(most, blocks);
      return static_cast<double>(most);
    };
    sum.within += most(in, out);
    sum.between += most(host_in, host_out);
  }
  return sum;
}

std::vector<Method> plans_of(named::Algorithm algorithm, Op op, const Hosts& hosts) {
  using enum named::Algorithm;
  const bool is_mixed = hosts.count() > 1 && hosts.most_members() > 1;
  const int owners = std::max((is_mixed ? hosts.count() : hosts.ranks()) - 1, 1);
  if (op == Op::bcast) {
    if (algorithm == scatter_ring || algorithm == scatter_doubling)
      return {{algorithm, hosts.ranks()}};
    if (algorithm == two_shot)
      return {{algorithm, owners}, {algorithm, 2 * owners}, {algorithm, 5 * owners}};
    return {{algorithm, 1}, {algorithm, 4}};
  }
  return {{algorithm, 1, 1}, {algorithm, 1, 3}, {algorithm, 1, 1000}};
}

void check(Op op, const Hosts& hosts) {
  const int n = hosts.ranks();
  const bool has_root = op == Op::bcast || op == Op::scatter || op == Op::gather;
  for (const named::Algorithm algorithm : named::algorithms_of(op, hosts))
    for (const Method& way : plans_of(algorithm, op, hosts)) {
      const Task task{op, n, has_root ? random_int(0, n - 1) : 0, way.segments};
      const Plan plan(task, [&](int rank) { return named::make(way, task, rank, hosts); });
      const std::string where =
          text(std::string(named::name(algorithm)) + " on " + std::to_string(hosts.count()) +
                   " hosts, window " + std::to_string(way.window),
               task);
      expect_none(Verifier(plan).verify(), where);
      const int rounds = plan.ranks[0].rounds;
      for (const bool is_shared : {false, true}) {
        const named::Work work = named::work(way, op, hosts, is_shared);
        const Counted counted = count(plan, hosts, rounds, is_shared);
        if (work.rounds_within + work.rounds_between != rounds)
          expect_none("it says " + std::to_string(work.rounds_within + work.rounds_between) +
                          " rounds, and has " + std::to_string(rounds),
                      where);
        if (work.within != counted.within || work.between != counted.between)
          expect_none("it says " + std::to_string(work.within) + " within and " +
                          std::to_string(work.between) + " between hosts, and has " +
                          std::to_string(counted.within) + " and " +
                          std::to_string(counted.between) + (is_shared ? ", shared" : ""),
                      where);
      }
    }
}

void work_is_what_the_schedules_do() {
  for (const Op op : ops) {
    for (int n = 1; n <= 24; ++n) {
      check(op, even_hosts(1, n));
      check(op, even_hosts(n, 1));
    }
    for (const int n : {64, 100}) check(op, even_hosts(1, n));
    for (const int count : {2, 3, 4, 5, 8})
      for (const int members : {2, 3, 4, 7}) check(op, even_hosts(count, members));
  }
}

/// Whoever shares hosts however: every named algorithm moves all blocks.
void any_hosts() {
  for (const Op op : ops)
    for (int i = 0; i < 20; ++i) {
      const int n = random_int(2, 40);
      std::vector<int> host_of(index(n));
      for (int& host : host_of) host = random_int(0, n / 3);
      const Hosts hosts(host_of);
      for (const named::Algorithm algorithm : named::algorithms_of(op, hosts))
        for (const Method& way : plans_of(algorithm, op, hosts)) {
          const bool has_root = op == Op::bcast || op == Op::scatter || op == Op::gather;
          const Task task{op, n, has_root ? random_int(0, n - 1) : 0, way.segments};
          const Plan plan(task, [&](int rank) { return named::make(way, task, rank, hosts); });
          expect_none(Verifier(plan).verify(), text(named::name(algorithm), task));
          check_run(plan, {.is_in_order = true, .awaits_reader = true},
                    text(named::name(algorithm), task));
        }
    }
}

void two_shots_reach_thousands_of_hosts() {
  for (const int count : {65, 300})
    for (const int members : {1, 3}) {
      const Hosts hosts = even_hosts(count, members);
      const Task task{Op::bcast, hosts.ranks(), 7, 2 * (count - 1)};
      const Plan plan(task,
                      [&](int rank) { return hierarchical_two_shot_bcast(task, rank, hosts); });
      expect_none(Verifier(plan).verify(), text("hierarchical_two_shot_bcast", task));
      const auto are_apart = [&](int a, int b) { return hosts.host(a) != hosts.host(b); };
      CHECK(plan.volume_where(are_apart) ==
            static_cast<Block>(task.segments) * static_cast<Block>(count - 1));
    }
}

void names_are_read_back() {
  for (int i = 1; i < static_cast<int>(named::Algorithm::count_); ++i) {
    const auto algorithm = static_cast<named::Algorithm>(i);
    CHECK(named::algorithm_of(named::name(algorithm)) == algorithm);
  }
  CHECK(!named::algorithm_of("none") && !named::algorithm_of("") && !named::algorithm_of("rings"));
  const Hosts hosts = even_hosts(2, 3);
  bool is_refused = false;
  try {
    named::make({named::Algorithm::ring}, {Op::bcast, 6}, 0, hosts);
  } catch (const std::invalid_argument& error) {
    is_refused = std::string(error.what()).find("method.algorithm") != std::string::npos;
  }
  CHECK(is_refused);
}

}  // namespace

int main() {
  names_are_read_back();
  work_is_what_the_schedules_do();
  any_hosts();
  two_shots_reach_thousands_of_hosts();
  return check::failures == 0 ? 0 : 1;
}
