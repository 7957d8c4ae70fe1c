// A broadcast whose segments go to one host each, and from there to all others.

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "schedule/builder.hpp"
#include "schedule/moves/hierarchical.hpp"

namespace mpress::schedule {
namespace {

/// Hosts are counted from the root's. Each has a first rank: the root, or the one with the lowest
/// number.
class Shots {
 public:
  Shots(const Task& task, const Hosts& hosts)
      : hosts_(hosts),
        circle_(hosts.count(), hosts.host(task.root)),
        root_(task.root),
        segments_(task.segments),
        owners_(std::max(hosts.count() - 1, 1)),
        turns_(divided_up(task.segments, owners_)) {}

  int host(int rank) const { return circle_.place(hosts_.host(rank)); }
  int first(int host) const {
    return host == 0 ? root_ : hosts_.members(circle_.rank(host)).front();
  }
  /// Of the same host.
  std::span<const int> members(int host) const { return hosts_.members(circle_.rank(host)); }

  int hosts() const { return hosts_.count(); }
  int owner(int segment) const { return 1 + segment % owners_; }

  /// The one that the root sends to an owner in a turn, if there is one.
  int segment(int owner, int turn) const { return turn * owners_ + owner - 1; }
  bool has_segment(int owner, int turn) const {
    return turn >= 0 && segment(owner, turn) < segments_;
  }

  /// visit(segment), of those that the root sends in a turn; of none before the first turn and
  /// after the last.
  template <class Visit>
  void for_each(int turn, Visit visit) const {
    if (turn < 0) return;
    const int end = std::min((turn + 1) * owners_, segments_);
    for (int segment = turn * owners_; segment < end; ++segment) visit(segment);
  }

  /// visit(segment), of those that come to a host's first rank in a round, in their order.
  template <class Visit>
  void for_each_arrival(int host, int round, Visit visit) const {
    if (host == 0) return for_each(round + 1, visit);  // they are there before
    for_each(round - 1, [&](int segment) {
      if (owner(segment) != host) visit(segment);
    });
    for_each(round, [&](int segment) {
      if (owner(segment) == host) visit(segment);
    });
  }

  /// Rounds in all.
  int rounds() const {
    int most = 1;  // of hosts that are not the root's
    for (int host = 1; host < hosts(); ++host)
      most = std::max(most, hosts_.members_count(circle_.rank(host)));
    if (hosts() == 1) return hosts_.ranks() == 1 ? 0 : turns_;
    return turns_ + (hosts() > 2) + (most > 1);
  }

 private:
  const Hosts& hosts_;
  Circle circle_;
  int root_;
  int segments_;
  int owners_;  ///< hosts that the root sends to
  int turns_;
};

}  // namespace

Schedule hierarchical_two_shot_bcast(const Task& task, int rank, const Hosts& hosts) {
  Builder builder(task, Op::bcast, rank);
  if (hosts.ranks() != task.size)
    throw std::invalid_argument("hosts and task.size have different numbers of ranks");
  const Shots shots(task, hosts);
  const int host = shots.host(rank);
  const int first = shots.first(host);
  const int rounds = shots.rounds();
  for (int round = 0; round < rounds; ++round) {
    const auto add_arrivals = [&] {
      shots.for_each_arrival(host, round - 1, [&](int segment) { builder.block(segment); });
    };
    if (rank != first) {
      add_arrivals();
      builder.receive(first, round);
      continue;
    }
    const auto add_own = [&](int owner, int turn) {
      if (shots.has_segment(owner, turn)) builder.block(shots.segment(owner, turn));
    };
    for (int step = 1; step < shots.hosts(); ++step) {
      // Those that a host owns go in an order in which no other is met by all at once.
      const int others = shots.hosts() - 1;
      const int to = host == 0 ? step : 1 + (host - 1 + step) % others;
      const int from = host == 0 ? 0 : 1 + (host - 1 + others - step % others) % others;
      if (host == 0) {
        add_own(to, round);
        builder.send(shots.first(to), round);
      } else if (step < others) {
        add_own(host, round - 1);
        builder.send(shots.first(to), round);
        add_own(from, round - 1);
        builder.receive(shots.first(from), round);
      }
    }
    if (host != 0) {
      add_own(host, round);
      builder.receive(task.root, round);
    }
    for (const int member : shots.members(host)) {
      if (member == rank) continue;
      add_arrivals();
      builder.send(member, round);
    }
  }
  return builder.finish(rounds);
}

}  // namespace mpress::schedule
