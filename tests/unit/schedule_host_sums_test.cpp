// Contributions to a reduction, added up within hosts on their way: each reaches its owner, once,
// within the rounds and the volume of the header.
//
// A sum stands for the blocks that it was made of. So both schedules, one after the other, are an
// all-to-all that forwards blocks, of which the verifier of schedules knows the rules.

#include <cstddef>
#include <stdexcept>

#include "schedule/sums/host_sums.hpp"
#include "schedule_cases.hpp"

using namespace schedule_cases;
using schedule_simulator::index;

namespace {

Hosts random_hosts(int size, int kind) {
  std::vector<int> host_of_rank;
  const int most = random_int(1, std::min(size, 8));
  for (int rank = 0; rank < size; ++rank) {
    int host = 0;
    if (kind == 1) host = rank;
    if (kind == 2) host = rank / most;
    if (kind == 3) host = rank % most;
    if (kind == 4) host = random_int(0, size - 1);
    if (kind == 5) host = rank % 3 == 1 ? 0 : rank;
    host_of_rank.push_back(-3 * host);
  }
  return Hosts(host_of_rank);
}
constexpr int kinds = 6;

Task task_of(const Hosts& hosts) { return {Op::alltoall, hosts.ranks()}; }

/// `between` with the blocks that its sums were made of, behind `within`.
Schedule joined(const Hosts& hosts, int rank, int window) {
  const auto size = static_cast<Block>(hosts.ranks());
  Schedule all = host_sums_within(task_of(hosts), rank, hosts, window);
  const Schedule sums = host_sums_between(task_of(hosts), rank, hosts, window);
  const auto append = [&](std::vector<Transfer>& to, const std::vector<Transfer>& from) {
    for (Transfer transfer : from) {
      const auto blocks = sums.blocks_of(transfer);
      transfer.round += all.rounds;
      transfer.first = static_cast<std::uint32_t>(all.blocks.size());
      transfer.count = 0;
      for (const Block sum : blocks) {
        const auto adder = static_cast<int>(sum / size);
        for (const int origin : hosts.members(hosts.host(adder))) {
          all.blocks.push_back(static_cast<Block>(origin) * size + sum % size);
          ++transfer.count;
        }
      }
      to.push_back(transfer);
    }
  };
  append(all.sends, sums.sends);
  append(all.receives, sums.receives);
  all.rounds += sums.rounds;
  return all;
}

void check(const Hosts& hosts, int window) {
  const Task task = task_of(hosts);
  const Plan plan(task, [&](int rank) { return joined(hosts, rank, window); });
  const std::string where = text("host_sums on " + std::to_string(hosts.count()) + " hosts", task);
  const std::string error = schedule_simulator::Verifier(plan).verify();
  expect_none(error, where);
  if (!error.empty()) return;
  check_run(plan, random_runner(20), where);

  const Plan within(task, [&](int rank) { return host_sums_within(task, rank, hosts, window); });
  const Plan between(task, [&](int rank) { return host_sums_between(task, rank, hosts, window); });
  const auto are_apart = [&](int a, int b) { return hosts.host(a) != hosts.host(b); };
  const auto n = static_cast<Block>(task.size);
  const auto h = static_cast<Block>(hosts.count());
  CHECK(within.volume_where(are_apart) == 0);
  CHECK(between.volume_where(are_apart) == n * (h - 1));
  CHECK(between.volume().total == n * (h - 1));
  CHECK(between.ranks[0].rounds == ceil_of(hosts.count() - 1, window));
  CHECK(within.ranks[0].rounds == ceil_of(hosts.most_members() - 1, window));
  if (!hosts.is_even()) return;
  const auto m = static_cast<Block>(hosts.most_members());
  CHECK(within.volume().busiest == h * (m - 1) && within.volume().total == h * n * (m - 1));
  CHECK(between.volume().busiest == h - 1);
}

void every_size_to_64() {
  for (int size = 1; size <= 64; ++size)
    for (int kind = 0; kind < kinds; ++kind) check(random_hosts(size, kind), random_int(1, 4));
}

void random_larger_sizes() {
  for (int kind = 0; kind < kinds; ++kind)
    check(random_hosts(random_int(65, 256), kind), random_int(1, 32));
}

/// Of what all ranks say of themselves: they agree, and a host's ranks share the work.
void ranks_agree(const Hosts& hosts) {
  std::vector<Block> given(index(hosts.ranks()));
  for (int rank = 0; rank < hosts.ranks(); ++rank) {
    const std::vector<int> owners = owners_of(hosts, rank);
    CHECK(owners.front() == rank);
    for (const int owner : owners) {
      CHECK(adder_of(hosts, hosts.host(rank), owner) == rank);
      if (hosts.host(owner) != hosts.host(rank)) ++given[index(owner)];
    }
    const auto others =
        static_cast<std::size_t>(hosts.ranks() - hosts.members_count(hosts.host(rank)));
    const auto members = static_cast<std::size_t>(hosts.members_count(hosts.host(rank)));
    if (hosts.is_even()) CHECK(owners.size() == 1 + others / members);
  }
  for (int rank = 0; rank < hosts.ranks(); ++rank) {
    CHECK(given[index(rank)] == static_cast<Block>(hosts.count() - 1));
    const std::vector<int> sources = sources_of(hosts, rank);
    CHECK(std::is_sorted(sources.begin(), sources.end()));
    const int members = hosts.members_count(hosts.host(rank));
    CHECK(sources.size() == index(members + hosts.count() - 1));
  }
}

void many_ranks_agree() {
  for (int kind = 0; kind < kinds; ++kind) ranks_agree(random_hosts(random_int(65, 4096), kind));
}

template <class Call>
void refused(Call call) {
  try {
    call();
  } catch (const std::invalid_argument&) {
    return;
  }
  CHECK(!"refused");
}

void bad_input_is_refused() {
  const Hosts hosts(std::vector<int>{0, 0, 1});
  refused([&] { host_sums_within({Op::alltoall, 4}, 0, hosts, 1); });
  refused([&] { host_sums_between({Op::alltoall, 3}, 0, hosts, 0); });
  refused([&] { host_sums_between({Op::allgather, 3}, 0, hosts, 1); });
}

}  // namespace

int main() {
  every_size_to_64();
  random_larger_sizes();
  many_ranks_agree();
  bad_input_is_refused();
  return check::failures == 0 ? 0 : 1;
}
