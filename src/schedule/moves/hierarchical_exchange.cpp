// All-gather and all-to-all between ranks some of which share a host.

#include <algorithm>
#include <stdexcept>

#include "schedule/builder.hpp"
#include "schedule/moves/hierarchical.hpp"

namespace mpress::schedule {
namespace {

void require(const Task& task, const Hosts& hosts) {
  if (hosts.ranks() != task.size)
    throw std::invalid_argument("hosts and task.size have different numbers of ranks");
}

std::size_t index(int value) { return static_cast<std::size_t>(value); }

}  // namespace

Schedule hierarchical_allgather(const Task& task, int rank, const Hosts& hosts) {
  Builder builder(task, Op::allgather, rank);
  require(task, hosts);
  const int host = hosts.host(rank);
  const int place = hosts.place(rank);
  const Circle circle(hosts.count(), host);
  const std::span<const int> members = hosts.members(host);
  const int count = hosts.members_count(host);
  const Circle places(count, place);

  // Blocks that came to each place of this host in the round before; at first, its own.
  std::vector<std::vector<int>> landed(members.size());
  for (int other = 0; other < count; ++other) landed[index(other)] = {members[index(other)]};

  for (int round = 0; round < hosts.count(); ++round) {
    for (int step = 1; step < count; ++step) {
      const int to = places.rank(step);
      for (const int block : landed[index(place)]) builder.block(block);
      builder.send(members[index(to)], round);
      const int from = places.rank(count - step);
      for (const int block : landed[index(from)]) builder.block(block);
      builder.receive(members[index(from)], round);
    }
    if (round == hosts.count() - 1) break;

    const int to = circle.rank(round + 1);
    const int reader = hosts.others_below(rank, to) % hosts.members_count(to);
    builder.block(rank);
    builder.send(hosts.members(to)[index(reader)], round);
    for (auto& blocks : landed) blocks.clear();
    for (const int origin : hosts.members(circle.rank(hosts.count() - 1 - round))) {
      const int reads = hosts.others_below(origin, host) % count;
      landed[index(reads)].push_back(origin);
      if (reads != place) continue;
      builder.block(origin);
      builder.receive(origin, round);
    }
  }
  return builder.finish(hosts.most_members() == 1 ? hosts.count() - 1 : hosts.count());
}

namespace {

/// Spreads `a` and `b` evenly over one another.
template <class T>
std::vector<T> merged(const std::vector<T>& a, const std::vector<T>& b) {
  const std::size_t total = a.size() + b.size();
  std::vector<T> both;
  both.reserve(total);
  std::size_t from_b = 0;
  for (std::size_t i = 0; i < total; ++i) {
    const bool is_b = (i + 1) * b.size() / total > from_b;
    both.push_back(is_b ? b[from_b++] : a[i - from_b]);
  }
  return both;
}

struct Partners {
  int to;
  int from;
};

/// All hosts have `members` ranks: steps of so many hosts and so many places.
std::vector<Partners> even_steps(const Hosts& hosts, int rank) {
  const int members = hosts.most_members();
  const Circle host(hosts.count(), hosts.host(rank));
  const Circle place(members, hosts.place(rank));
  const auto partners = [&](int over_hosts, int over_places) {
    const auto at = [&](int host, int place) { return hosts.members(host)[index(place)]; };
    return Partners{at(host.rank(over_hosts), place.rank(over_places)),
                    at(host.rank((hosts.count() - over_hosts) % hosts.count()),
                       place.rank((members - over_places) % members))};
  };
  std::vector<Partners> between;
  std::vector<Partners> within;
  for (int over_places = 0; over_places < members; ++over_places)
    for (int over_hosts = 1; over_hosts < hosts.count(); ++over_hosts)
      between.push_back(partners(over_hosts, over_places));
  for (int over_places = 1; over_places < members; ++over_places)
    within.push_back(partners(0, over_places));
  return merged(between, within);
}

/// Distances in the order of hosts.
std::vector<Partners> uneven_steps(const Hosts& hosts, int rank) {
  const std::span<const int> order = hosts.host_by_host();
  const int size = hosts.ranks();
  const Circle circle(size, hosts.position(rank));
  std::vector<Partners> near;
  std::vector<Partners> far;
  for (int distance = 1; distance < size; ++distance) {
    const bool is_near = std::min(distance, size - distance) < hosts.most_members();
    (is_near ? near : far)
        .push_back(
            {order[index(circle.rank(distance))], order[index(circle.rank(size - distance))]});
  }
  return merged(far, near);
}

}  // namespace

Schedule hierarchical_alltoall(const Task& task, int rank, const Hosts& hosts, int window) {
  Builder builder(task, Op::alltoall, rank);
  require(task, hosts);
  require_at_least("window", window, 1);
  const auto block = [&](int origin, int destination) {
    builder.block(static_cast<Block>(origin) * static_cast<Block>(task.size) +
                  static_cast<Block>(destination));
  };
  int step = 0;
  for (const Partners& partners :
       hosts.is_even() ? even_steps(hosts, rank) : uneven_steps(hosts, rank)) {
    const int round = step++ / window;
    block(rank, partners.to);
    builder.send(partners.to, round);
    block(partners.from, rank);
    builder.receive(partners.from, round);
  }
  return builder.finish(divided_up(task.size - 1, window));
}

}  // namespace mpress::schedule
