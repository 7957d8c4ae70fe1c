// Broadcast, scatter and gather along one tree between hosts, and one within each.

#include <algorithm>
#include <stdexcept>

#include "schedule/builder.hpp"
#include "schedule/moves/hierarchical.hpp"
#include "schedule/moves/knomial.hpp"

namespace mpress::schedule {
namespace {

/// Both trees as a rank sees them. Hosts are counted from the root's, and the places of a host from
/// its first rank: the root, or the one with the lowest number.
class Trees {
 public:
  Trees(const Task& task, int rank, const Hosts& hosts, Radices radices)
      : between(hosts.count(), radices.between),
        within(hosts.members_count(hosts.host(rank)), radices.within),
        within_rounds(digits(hosts.most_members(), radices.within)),
        host(host_circle(task, hosts).place(hosts.host(rank))),
        place(places(task, hosts, host).place(hosts.place(rank))),
        task_(task),
        hosts_(hosts) {}

  /// Of a host that is counted from the root's.
  int members(int host) const {
    return hosts_.members_count(host_circle(task_, hosts_).rank(host));
  }
  int rank(int host, int place) const {
    const int number = host_circle(task_, hosts_).rank(host);
    const int member = places(task_, hosts_, host).rank(place);
    return hosts_.members(number)[static_cast<std::size_t>(member)];
  }

  Knomial between;
  Knomial within;
  int within_rounds;  ///< of the host that takes longest
  int host;
  int place;

 private:
  static Circle host_circle(const Task& task, const Hosts& hosts) {
    return {hosts.count(), hosts.host(task.root)};
  }
  static Circle places(const Task& task, const Hosts& hosts, int host) {
    const int number = host_circle(task, hosts).rank(host);
    return {hosts.members_count(number), host == 0 ? hosts.place(task.root) : 0};
  }

  const Task& task_;
  const Hosts& hosts_;
};

void require(const Task& task, const Hosts& hosts, Radices radices) {
  if (hosts.ranks() != task.size)
    throw std::invalid_argument("hosts and task.size have different numbers of ranks");
  require_at_least("radices.between", radices.between, 2);
  require_at_least("radices.within", radices.within, 2);
}

}  // namespace

Schedule hierarchical_bcast(const Task& task, int rank, const Hosts& hosts, Radices radices) {
  Builder builder(task, Op::bcast, rank);
  require(task, hosts, radices);
  const Trees trees(task, rank, hosts, radices);
  const int stride = std::max(trees.between.rounds(), trees.within_rounds);
  for (int segment = 0; segment < task.segments; ++segment) {
    const int begin = segment * stride;
    const int later = begin + trees.between.rounds();
    const auto add = [&](auto transfer, int host, int place, int round) {
      builder.block(segment);
      (builder.*transfer)(trees.rank(host, place), round);
    };
    if (trees.place != 0)
      add(&Builder::receive, trees.host, trees.within.parent(trees.place),
          later + trees.within.round(trees.place));
    else if (trees.host != 0)
      add(&Builder::receive, trees.between.parent(trees.host), 0,
          begin + trees.between.round(trees.host));
    if (trees.place == 0)
      trees.between.for_each_child(
          trees.host, [&](int child, int round) { add(&Builder::send, child, 0, begin + round); });
    trees.within.for_each_child(trees.place, [&](int child, int round) {
      add(&Builder::send, trees.host, child, later + round);
    });
  }
  return builder.finish((task.segments - 1) * stride + trees.between.rounds() +
                        trees.within_rounds);
}

namespace {

Schedule tree_of_trees(const Task& task, int rank, const Hosts& hosts, Radices radices, Op op) {
  Builder builder(task, op, rank);
  require(task, hosts, radices);
  const Trees trees(task, rank, hosts, radices);
  const auto add_hosts = [&](int top) {
    for (int host = top; host < trees.between.end(top); ++host)
      for (int place = 0; place < trees.members(host); ++place)
        builder.block(trees.rank(host, place));
  };
  const auto add_places = [&](int top) {
    for (int place = top; place < trees.within.end(top); ++place)
      builder.block(trees.rank(trees.host, place));
  };
  const int later = trees.between.rounds();
  if (trees.place != 0) {
    add_places(trees.place);
    builder.receive(trees.rank(trees.host, trees.within.parent(trees.place)),
                    later + trees.within.round(trees.place));
  } else {
    if (trees.host != 0) {
      add_hosts(trees.host);
      builder.receive(trees.rank(trees.between.parent(trees.host), 0),
                      trees.between.round(trees.host));
    }
    trees.between.for_each_child(trees.host, [&](int child, int round) {
      add_hosts(child);
      builder.send(trees.rank(child, 0), round);
    });
  }
  trees.within.for_each_child(trees.place, [&](int child, int round) {
    add_places(child);
    builder.send(trees.rank(trees.host, child), later + round);
  });
  return builder.finish(trees.between.rounds() + trees.within_rounds);
}

}  // namespace

Schedule hierarchical_scatter(const Task& task, int rank, const Hosts& hosts, Radices radices) {
  return tree_of_trees(task, rank, hosts, radices, Op::scatter);
}

Schedule hierarchical_gather(const Task& task, int rank, const Hosts& hosts, Radices radices) {
  return reversed(tree_of_trees(task, rank, hosts, radices, Op::gather));
}

}  // namespace mpress::schedule
