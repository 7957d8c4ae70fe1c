// Which algorithm moves the data of a collective call: the one that takes least by the cost model,
// on few ranks and thousands, short and long, slow networks and fast links.

#include "policy/methods.hpp"

#include <vector>

#include "check.hpp"

using namespace mpress;
using namespace mpress::policy;
using schedule::Algorithm;
using schedule::Hosts;
using schedule::Method;
using schedule::Op;

namespace {

constexpr std::size_t megabyte = 1 << 20;
constexpr LinkCosts shared_memory{3e-6, 1.0 / 8e9};
constexpr LinkCosts gigabit{50e-6, 1.0 / 125e6};
constexpr LinkCosts linked{10e-6, 1.0 / 300e9};
constexpr LinkCosts pinned{20e-6, 1.0 / 25e9, 1, true};

Hosts even_hosts(int count, int members) {
  std::vector<int> host_of;
  for (int rank = 0; rank < count * members; ++rank) host_of.push_back(rank / members);
  return Hosts(host_of);
}

double seconds_of(const Method& method, Op op, std::size_t bytes, const Hosts& hosts,
                  const CollectiveCosts& costs) {
  return collective_seconds(method, op, static_cast<double>(bytes), hosts, costs);
}

void long_broadcasts_are_pipelines() {
  for (const int hosts : {3, 4, 8, 16, 64, 1000}) {
    const Hosts apart = even_hosts(hosts, 1);
    const CollectiveCosts costs{shared_memory, gigabit};
    const std::size_t bytes = 64 * megabyte;
    const Method method = choose_method(Op::bcast, bytes, apart, costs, 1);
    // All have it after little more than one of them takes to get it.
    const double least = static_cast<double>(bytes) / 125e6;
    if (hosts <= 64) CHECK(seconds_of(method, Op::bcast, bytes, apart, costs) < 1.35 * least);
    const Method tree{Algorithm::binomial, 1, 1};
    CHECK(seconds_of(tree, Op::bcast, bytes, apart, costs) > 1.9 * least);
    CHECK(method.algorithm != Algorithm::linear && method.algorithm != Algorithm::binomial);
  }
}

void short_broadcasts_take_few_rounds() {
  const CollectiveCosts costs{shared_memory, gigabit};
  for (const int hosts : {3, 64, 4096}) {
    const Method method = choose_method(Op::bcast, 1024, even_hosts(hosts, 1), costs, 1);
    CHECK(method.algorithm == (hosts == 3 ? Algorithm::linear : Algorithm::binomial));
    CHECK(method.segments == 1);
  }
}

void what_is_written_once_goes_to_all_at_once() {
  const CollectiveCosts costs{pinned, gigabit};
  const Method method = choose_method(Op::bcast, 64 * megabyte, even_hosts(1, 4), costs, 1);
  CHECK(method.algorithm == Algorithm::linear);
  CHECK(choose_method(Op::bcast, 64 * megabyte, even_hosts(1, 4), {linked, gigabit}, 1).algorithm !=
        Algorithm::linear);
}

void small_payloads_need_fewer_segments() {
  const Hosts hosts = even_hosts(4, 1);
  const CollectiveCosts costs{shared_memory, gigabit};
  const auto segments = [&](double wire_per_raw) {
    return choose_method(Op::bcast, 16 * megabyte, hosts, costs, wire_per_raw, Algorithm::two_shot)
        .segments;
  };
  CHECK(segments(1) > segments(0.02) && segments(0.02) >= 3);
  // None shorter than is worth a codec's calls.
  for (const double wire_per_raw : {0.02, 0.3, 1.0}) CHECK(segments(wire_per_raw) <= 256);
}

void everybody_meets_few_where_links_are_crowded() {
  const Hosts hosts = even_hosts(8, 1);
  CollectiveCosts costs{shared_memory, gigabit};
  CHECK(choose_method(Op::alltoall, megabyte, hosts, costs, 1).algorithm == Algorithm::scattered);
  CHECK(choose_method(Op::allgather, megabyte, hosts, costs, 1).algorithm == Algorithm::ring);
  CHECK(choose_method(Op::allgather, 4096, hosts, costs, 1).algorithm == Algorithm::scattered);
  costs.between.crowding = 1.4;
  CHECK(choose_method(Op::alltoall, megabyte, hosts, costs, 1).algorithm == Algorithm::pairwise);
  // Among hosts of several ranks rounds of one partner leave one kind of link idle.
  costs.between.crowding = 1.1;
  costs.within = costs.between;
  CHECK(choose_method(Op::alltoall, megabyte, hosts, costs, 1).algorithm == Algorithm::pairwise);
  CHECK(choose_method(Op::alltoall, megabyte, even_hosts(2, 2), costs, 1).algorithm ==
        Algorithm::scattered);
}

void nothing_is_forwarded_where_nobody_knows_the_bytes() {
  CollectiveCosts costs{shared_memory, gigabit};
  costs.between.crowding = 2;
  for (const auto& hosts : {even_hosts(1, 6), even_hosts(6, 1), even_hosts(3, 2)}) {
    CHECK(choose_method(Op::scatter, 0, hosts, costs, 1).algorithm == Algorithm::linear);
    CHECK(choose_method(Op::gather, 0, hosts, costs, 1).algorithm == Algorithm::linear);
    CHECK(choose_method(Op::alltoall, 0, hosts, costs, 1).algorithm == Algorithm::scattered);
  }
}

void what_is_wanted_is_taken_where_it_suits() {
  const CollectiveCosts costs{shared_memory, gigabit};
  const auto taken = [&](Algorithm wanted, Op op, const Hosts& hosts) {
    return choose_method(op, megabyte, hosts, costs, 1, wanted).algorithm;
  };
  const Hosts six = even_hosts(6, 1);
  CHECK(taken(Algorithm::chain, Op::bcast, six) == Algorithm::chain);
  CHECK(taken(Algorithm::scatter_ring, Op::bcast, six) == Algorithm::scatter_ring);
  CHECK(choose_method(Op::bcast, megabyte, six, costs, 1, Algorithm::scatter_ring).segments == 6);
  CHECK(taken(Algorithm::pairwise, Op::alltoall, six) == Algorithm::pairwise);
  // Not what others' blocks would need memory for, not with six ranks, and not where ranks share
  // several hosts.
  CHECK(taken(Algorithm::bruck, Op::alltoall, six) == Algorithm::scattered);
  CHECK(taken(Algorithm::doubling, Op::allgather, six) != Algorithm::doubling);
  CHECK(taken(Algorithm::ring, Op::allgather, even_hosts(3, 2)) == Algorithm::by_host);
}

/// Whatever else serves takes at least as long as what is chosen.
void the_least_is_chosen() {
  const CollectiveCosts costs{shared_memory, gigabit};
  for (const Op op : {Op::bcast, Op::scatter, Op::gather, Op::allgather, Op::alltoall})
    for (const auto& hosts : {even_hosts(1, 7), even_hosts(8, 1), even_hosts(4, 3)})
      for (const std::size_t bytes : {megabyte, 32 * megabyte}) {
        const Method best = choose_method(op, bytes, hosts, costs, 1);
        for (const Algorithm other : schedule::algorithms_of(op, hosts)) {
          if (schedule::passes_on_others(other, op)) continue;
          const Method method = choose_method(op, bytes, hosts, costs, 1, other);
          CHECK(method.algorithm == other);
          CHECK(seconds_of(best, op, bytes, hosts, costs) <=
                seconds_of(method, op, bytes, hosts, costs));
        }
      }
}

void one_rank_has_nothing_to_do() {
  const CollectiveCosts costs{shared_memory, gigabit};
  for (const Op op : {Op::bcast, Op::scatter, Op::gather, Op::allgather, Op::alltoall}) {
    const Hosts alone = even_hosts(1, 1);
    const Method method = choose_method(op, megabyte, alone, costs, 1);
    CHECK(seconds_of(method, op, megabyte, alone, costs) == 0);
    CHECK(make(method, {op, 1, 0, method.segments}, 0, alone).rounds == 0);
  }
}

/// Whatever changes from one call to the next.
void what_is_remembered_is_what_is_asked_for() {
  CollectiveCosts costs{shared_memory, gigabit};
  const Hosts hosts = even_hosts(4, 3);
  MethodChoice choice;
  const auto is_right = [&](Op op, std::size_t bytes, double wire_per_raw, Algorithm wanted) {
    const Method right = choose_method(op, bytes, hosts, costs, wire_per_raw, wanted);
    for (int i = 0; i < 2; ++i) {
      const Method found = choice(op, bytes, hosts, costs, wire_per_raw, wanted);
      if (found.algorithm != right.algorithm || found.segments != right.segments ||
          found.window != right.window) {
        return false;
      }
    }
    return true;
  };
  for (int round = 0; round < 2; ++round) {
    for (const Op op : {Op::bcast, Op::scatter, Op::gather, Op::allgather, Op::alltoall}) {
      CHECK(is_right(op, 64 * megabyte, 1, Algorithm::none));
      CHECK(is_right(op, 1024, 1, Algorithm::none));
    }
    CHECK(is_right(Op::bcast, 64 * megabyte, 1, Algorithm::none));
    CHECK(is_right(Op::bcast, 64 * megabyte, 0.01, Algorithm::none));
    CHECK(is_right(Op::bcast, 64 * megabyte, 0.01, Algorithm::binomial));
    costs = {linked, gigabit};
    CHECK(is_right(Op::bcast, 64 * megabyte, 0.01, Algorithm::binomial));
    CHECK(is_right(Op::bcast, 64 * megabyte, 1, Algorithm::none));
    costs.between.crowding = 20;
    CHECK(is_right(Op::alltoall, megabyte, 1, Algorithm::none));
  }
}

}  // namespace

int main() {
  long_broadcasts_are_pipelines();
  short_broadcasts_take_few_rounds();
  what_is_written_once_goes_to_all_at_once();
  small_payloads_need_fewer_segments();
  everybody_meets_few_where_links_are_crowded();
  nothing_is_forwarded_where_nobody_knows_the_bytes();
  what_is_wanted_is_taken_where_it_suits();
  the_least_is_chosen();
  one_rank_has_nothing_to_do();
  what_is_remembered_is_what_is_asked_for();
  return check::failures == 0 ? 0 : 1;
}
