// Algorithms that know who shares a host, on hosts of any sizes with ranks in any order: all blocks
// arrive, once, within the rounds and the volume of the header, and between hosts no more goes than
// it says.
//
// Sizes to 64 are all tried, larger ones at random: to 4096 ranks where the work is linear, to
// fewer where it is quadratic, so that the program takes a few seconds.

#include <cstddef>
#include <map>
#include <set>
#include <stdexcept>

#include "schedule/moves/hierarchical.hpp"
#include "schedule_cases.hpp"

using namespace schedule_cases;
using schedule_simulator::index;

namespace {

/// Host numbers are names: neither small nor in any order.
int name_of(int host) { return 1000 - 7 * host; }

/// One host, each its own, blocks, round robin, any, one large and many small.
std::vector<int> random_mapping(int size, int kind) {
  std::vector<int> hosts;
  const int most = random_int(1, std::min(size, 8));
  const int count = random_int(1, size);
  for (int rank = 0; rank < size; ++rank) {
    int host = 0;
    if (kind == 1) host = rank;
    if (kind == 2) host = rank / most;
    if (kind == 3) host = rank % most;
    if (kind == 4) host = random_int(0, count - 1);
    if (kind == 5) host = rank % 3 == 1 ? 0 : rank;
    hosts.push_back(name_of(host));
  }
  return hosts;
}
constexpr int kinds = 6;

/// The place in its host's tree of each rank, and its host's in the tree of hosts, as the header
/// counts them.
struct Counted {
  Counted(const Hosts& hosts, int root) {
    for (int rank = 0; rank < hosts.ranks(); ++rank) {
      const int first = hosts.host(rank) == hosts.host(root) ? hosts.place(root) : 0;
      const int members = hosts.members_count(hosts.host(rank));
      place.push_back((hosts.place(rank) - first + members) % members);
      const int shift = hosts.host(rank) - hosts.host(root) + hosts.count();
      host.push_back(shift % hosts.count());
    }
  }
  std::vector<int> place;
  std::vector<int> host;
};

/// Children of `place` in a k-nomial tree of n: those whose last digit that is not zero is cleared.
Block children_of(int place, int n, int k) {
  Block count = 0;
  for (int child = place + 1; child < n; ++child) {
    int power = 1;
    while (child / power % k == 0) power *= k;
    if (child - child / power % k * power == place) ++count;
  }
  return count;
}

struct Case {
  Task task;
  Hosts hosts;
  Radices radices = {};
  int window = 1;
};

Volume bcast_volume(const Case& c) {
  const auto [b, w] = c.radices;
  const int s = c.task.segments;
  const int between = log_up(c.hosts.count(), b);
  const int within = log_up(c.hosts.most_members(), w);
  const Counted counted(c.hosts, c.task.root);
  Block busiest = 1;
  for (int rank = 0; rank < c.task.size; ++rank) {
    if (counted.place[index(rank)] != 0) continue;
    const int members = c.hosts.members_count(c.hosts.host(rank));
    busiest = std::max(
        busiest, children_of(counted.host[index(rank)], c.hosts.count(), b) + children(members, w));
  }
  if (c.hosts.is_even())
    CHECK(busiest == children(c.hosts.count(), b) + children(c.hosts.most_members(), w));
  return {(s - 1) * std::max(between, within) + between + within, static_cast<Block>(s) * busiest,
          static_cast<Block>(s) * static_cast<Block>(c.task.size - 1)};
}

/// (2) of the header: in all, and between hosts.
std::pair<Block, Block> tree_sums(const Case& c) {
  const Counted counted(c.hosts, c.task.root);
  Block all = 0, between = 0;
  for (int rank = 0; rank < c.task.size; ++rank) {
    const int crossings = nonzero_digits(counted.host[index(rank)], c.radices.between);
    between += static_cast<Block>(crossings);
    all += static_cast<Block>(crossings +
                              nonzero_digits(counted.place[index(rank)], c.radices.within));
  }
  return {all, between};
}

Volume tree_volume(const Case& c) {
  return {
      log_up(c.hosts.count(), c.radices.between) + log_up(c.hosts.most_members(), c.radices.within),
      static_cast<Block>(c.task.size - 1), tree_sums(c).first};
}

Volume allgather_volume(const Case& c) {
  const int n = c.task.size;
  const int h = c.hosts.count();
  int busiest = n - 1;
  for (int host = 0; host < h; ++host) {
    const int i = c.hosts.members_count(host);
    busiest = std::max(busiest, h - 1 + (i - 1) * (1 + ceil_of(n - i, i)));
  }
  if (c.hosts.is_even()) CHECK(busiest == n - 1);
  const bool is_alone = c.hosts.most_members() == 1;
  return {is_alone ? h - 1 : h, static_cast<Block>(busiest),
          static_cast<Block>(n) * static_cast<Block>(n - 1)};
}

Volume alltoall_volume(const Case& c) {
  const auto n = static_cast<Block>(c.task.size);
  return {ceil_of(c.task.size - 1, c.window), n - 1, n * (n - 1)};
}

Plan plan_of(const Case& c) {
  return Plan(c.task, [&](int rank) {
    switch (c.task.op) {
      case Op::bcast: return hierarchical_bcast(c.task, rank, c.hosts, c.radices);
      case Op::scatter: return hierarchical_scatter(c.task, rank, c.hosts, c.radices);
      case Op::gather: return hierarchical_gather(c.task, rank, c.hosts, c.radices);
      case Op::allgather: return hierarchical_allgather(c.task, rank, c.hosts);
      default: return hierarchical_alltoall(c.task, rank, c.hosts, c.window);
    }
  });
}

Volume volume_of(const Case& c) {
  if (c.task.size == 1) return {};
  switch (c.task.op) {
    case Op::bcast: return bcast_volume(c);
    case Op::scatter:
    case Op::gather: return tree_volume(c);
    case Op::allgather: return allgather_volume(c);
    default: return alltoall_volume(c);
  }
}

/// The column `between` of the header.
Block between_of(const Case& c) {
  const auto n = static_cast<Block>(c.task.size);
  const auto others = static_cast<Block>(c.hosts.count() - 1);
  switch (c.task.op) {
    case Op::bcast: return static_cast<Block>(c.task.segments) * others;
    case Op::scatter:
    case Op::gather: {
      const Block sum = tree_sums(c).second;
      const auto near = static_cast<Block>(c.hosts.members_count(c.hosts.host(c.task.root)));
      if (c.radices.between >= c.hosts.count()) CHECK(sum == n - near);
      return sum;
    }
    case Op::allgather: return n * others;
    default: {
      Block pairs = n * (n - 1);
      for (int host = 0; host < c.hosts.count(); ++host) {
        const auto members = static_cast<Block>(c.hosts.members_count(host));
        pairs -= members * (members - 1);
      }
      return pairs;
    }
  }
}

const char* name(Op op) {
  switch (op) {
    case Op::bcast: return "hierarchical_bcast";
    case Op::scatter: return "hierarchical_scatter";
    case Op::gather: return "hierarchical_gather";
    case Op::allgather: return "hierarchical_allgather";
    default: return "hierarchical_alltoall";
  }
}

/// What crosses to a host is spread over its ranks.
void check_arrivals(const Case& c, const Plan& plan) {
  std::vector<int> arrivals(index(c.task.size));
  for (int rank = 0; rank < c.task.size; ++rank)
    for (const Transfer& transfer : plan.ranks[index(rank)].sends)
      if (c.hosts.host(rank) != c.hosts.host(transfer.peer)) {
        CHECK(transfer.count == 1);
        ++arrivals[index(transfer.peer)];
      }
  for (int host = 0; host < c.hosts.count(); ++host) {
    const int members = c.hosts.members_count(host);
    for (const int rank : c.hosts.members(host)) {
      const int count = arrivals[index(rank)];
      CHECK(count == (c.task.size - members) / members ||
            count == ceil_of(c.task.size - members, members));
    }
  }
}

/// In each step a rank sends to one and receives from one; on equal hosts, steps within hosts are
/// spread over those between, and the next step between goes to another host.
void check_steps(const Case& c, const Plan& plan) {
  const int steps = c.task.size - 1;
  const int members = c.hosts.most_members();
  for (int rank = 0; rank < c.task.size; ++rank) {
    const Schedule& schedule = plan.ranks[index(rank)];
    CHECK(schedule.sends.size() == index(steps) && schedule.receives.size() == index(steps));
    int latest_within = -1;
    int latest_host = -1;
    for (int step = 0; step < steps; ++step) {
      const Transfer& transfer = schedule.sends[index(step)];
      CHECK(transfer.round == step / c.window);
      CHECK(schedule.receives[index(step)].round == step / c.window);
      if (!c.hosts.is_even()) continue;
      const int host = c.hosts.host(transfer.peer);
      const bool is_within = host == c.hosts.host(rank);
      const Transfer& first = plan.ranks[0].sends[index(step)];
      CHECK(is_within == (c.hosts.host(first.peer) == c.hosts.host(0)));
      if (is_within) {
        CHECK(latest_within < 0 || step - latest_within >= steps / (members - 1));
        latest_within = step;
      } else {
        CHECK(c.hosts.count() <= 2 || host != latest_host);
        latest_host = host;
      }
    }
  }
}

void check(const Case& c) {
  const Plan plan = plan_of(c);
  const std::string where =
      std::string(name(c.task.op)) + " on " + std::to_string(c.hosts.count()) + " hosts";
  check_plan(plan, volume_of(c), where);
  const auto are_apart = [&](int a, int b) { return c.hosts.host(a) != c.hosts.host(b); };
  if (plan.volume_where(are_apart) != between_of(c))
    expect_none("other volume between hosts than the header says", text(where, c.task));
  if (c.task.op == Op::allgather) check_arrivals(c, plan);
  if (c.task.op == Op::alltoall) check_steps(c, plan);
}

Case random_case(Op op, int size, int kind) {
  const bool has_root = op == Op::bcast || op == Op::scatter || op == Op::gather;
  Case c{{op, size, has_root ? random_int(0, size - 1) : 0, op == Op::bcast ? random_int(1, 6) : 1},
         Hosts(random_mapping(size, kind))};
  c.radices = {random_int(2, 5), random_int(2, 5)};
  if (random_int(0, 2) == 0) c.radices.between = std::max(2, c.hosts.count());
  c.window = random_int(1, 4);
  return c;
}

constexpr Op ops[] = {Op::bcast, Op::scatter, Op::gather, Op::allgather, Op::alltoall};

void every_size_to_64() {
  for (const Op op : ops)
    for (int size = 1; size <= 64; ++size)
      for (int kind = 0; kind < kinds; ++kind) check(random_case(op, size, kind));
}

void all_roots_of_small_sizes() {
  for (const Op op : {Op::bcast, Op::scatter, Op::gather})
    for (int size = 1; size <= 12; ++size)
      for (int kind = 0; kind < kinds; ++kind) {
        Case c = random_case(op, size, kind);
        for (c.task.root = 0; c.task.root < size; ++c.task.root) check(c);
      }
}

void random_larger_sizes() {
  for (const Op op : {Op::bcast, Op::scatter, Op::gather})
    for (int kind = 0; kind < kinds; ++kind) check(random_case(op, random_int(65, 4096), kind));
  for (int kind = 0; kind < kinds; ++kind) {
    check(random_case(Op::allgather, random_int(65, 512), kind));
    check(random_case(Op::alltoall, random_int(65, 256), kind));
  }
}

void hosts_are_counted() {
  const std::vector<int> mapping{9, -4, 9, 9, 2, -4};
  const Hosts hosts(mapping);
  CHECK(hosts.ranks() == 6 && hosts.count() == 3 && hosts.most_members() == 3);
  CHECK(!hosts.is_even() && Hosts(std::vector<int>{5, 3, 3, 5}).is_even());
  CHECK(hosts.host(0) == 0 && hosts.host(5) == 1 && hosts.host(4) == 2);
  CHECK(hosts.place(0) == 0 && hosts.place(3) == 2 && hosts.place(5) == 1);
  CHECK(hosts.members(0)[2] == 3 && hosts.members(1)[1] == 5 && hosts.members_count(2) == 1);
  CHECK(hosts.host_by_host()[3] == 1 && hosts.position(1) == 3 && hosts.position(4) == 5);
  CHECK(hosts.others_below(4, 0) == 1 && hosts.others_below(4, 1) == 3);
}

void bad_input_is_named() {
  const std::vector<int> mapping{0, 0, 1};
  const Hosts hosts(mapping);
  const auto is_refused = [](auto call, const std::string& name) {
    try {
      call();
    } catch (const std::invalid_argument& error) {
      return std::string(error.what()).find(name) != std::string::npos;
    }
    return false;
  };
  CHECK(is_refused([&] { hierarchical_bcast({Op::bcast, 4}, 0, hosts); }, "hosts"));
  CHECK(is_refused([&] { hierarchical_allgather({Op::allgather, 2}, 0, hosts); }, "hosts"));
  CHECK(is_refused([&] { hierarchical_bcast({Op::bcast, 3}, 0, hosts, {1, 2}); }, "between"));
  CHECK(is_refused([&] { hierarchical_gather({Op::gather, 3}, 0, hosts, {2, 1}); }, "within"));
  CHECK(is_refused([&] { hierarchical_alltoall({Op::alltoall, 3}, 0, hosts, 0); }, "window"));
}

}  // namespace

int main() {
  hosts_are_counted();
  bad_input_is_named();
  all_roots_of_small_sizes();
  every_size_to_64();
  random_larger_sizes();
  return check::failures == 0 ? 0 : 1;
}
