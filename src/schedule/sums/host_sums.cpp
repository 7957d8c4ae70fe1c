#include "schedule/sums/host_sums.hpp"

#include <algorithm>
#include <stdexcept>

#include "schedule/builder.hpp"

namespace mpress::schedule {
namespace {

void require(const Task& task, const Hosts& hosts, int window) {
  if (hosts.ranks() != task.size)
    throw std::invalid_argument("hosts and task.size have different numbers of ranks");
  require_at_least("window", window, 1);
}

Block block_of(const Task& task, int origin, int owner) {
  return static_cast<Block>(origin) * static_cast<Block>(task.size) + static_cast<Block>(owner);
}

/// Owners on `host` whose pieces `rank`, of another one, adds up.
template <class Take>
void for_owners(const Hosts& hosts, int host, int rank, Take take) {
  const int adders = hosts.members_count(hosts.host(rank));
  const std::span<const int> members = hosts.members(host);
  for (auto i = static_cast<std::size_t>(hosts.place(rank)); i < members.size();
       i += static_cast<std::size_t>(adders)) {
    take(members[i]);
  }
}

}  // namespace

int adder_of(const Hosts& hosts, int host, int owner) {
  if (hosts.host(owner) == host) return owner;
  const std::span<const int> members = hosts.members(host);
  return members[static_cast<std::size_t>(hosts.place(owner)) % members.size()];
}

std::vector<int> owners_of(const Hosts& hosts, int rank) {
  std::vector<int> owners{rank};
  const Circle circle(hosts.count(), hosts.host(rank));
  for (int step = 1; step < hosts.count(); ++step) {
    for_owners(hosts, circle.rank(step), rank, [&](int owner) { owners.push_back(owner); });
  }
  return owners;
}

std::vector<int> sources_of(const Hosts& hosts, int owner) {
  const std::span<const int> members = hosts.members(hosts.host(owner));
  std::vector<int> sources(members.begin(), members.end());
  for (int host = 0; host < hosts.count(); ++host) {
    if (host != hosts.host(owner)) sources.push_back(adder_of(hosts, host, owner));
  }
  std::ranges::sort(sources);
  return sources;
}

Schedule host_sums_within(const Task& task, int rank, const Hosts& hosts, int window) {
  Builder builder(task, Op::alltoall, rank);
  require(task, hosts, window);
  const std::span<const int> members = hosts.members(hosts.host(rank));
  const int count = hosts.members_count(hosts.host(rank));
  const Circle places(count, hosts.place(rank));
  const std::vector<int> own = owners_of(hosts, rank);
  for (int step = 1; step < count; ++step) {
    const int round = (step - 1) / window;
    const int to = members[static_cast<std::size_t>(places.rank(step))];
    for (const int owner : owners_of(hosts, to)) builder.block(block_of(task, rank, owner));
    builder.send(to, round);
    const int from = members[static_cast<std::size_t>(places.rank(count - step))];
    for (const int owner : own) builder.block(block_of(task, from, owner));
    builder.receive(from, round);
  }
  return builder.finish(divided_up(hosts.most_members() - 1, window));
}

Schedule host_sums_between(const Task& task, int rank, const Hosts& hosts, int window) {
  Builder builder(task, Op::alltoall, rank);
  require(task, hosts, window);
  const Circle circle(hosts.count(), hosts.host(rank));
  for (int step = 1; step < hosts.count(); ++step) {
    const int round = (step - 1) / window;
    for_owners(hosts, circle.rank(step), rank, [&](int owner) {
      builder.block(block_of(task, rank, owner));
      builder.send(owner, round);
    });
    const int from = adder_of(hosts, circle.rank(hosts.count() - step), rank);
    builder.block(block_of(task, from, rank));
    builder.receive(from, round);
  }
  return builder.finish(divided_up(hosts.count() - 1, window));
}

}  // namespace mpress::schedule
