#include "coll/blocks/long_pairs.hpp"

#include <cstddef>

#include "coll/team.hpp"
#include "policy/methods.hpp"
#include "schedule/moves/hierarchical.hpp"
#include "schedule/moves/linear.hpp"
#include "schedule/moves/pairwise.hpp"

namespace mpress::engine {
namespace {

/// Nothing is forwarded, whoever shares hosts: schedule::make() has other algorithms there.
schedule::Schedule whole(const schedule::Task& task, const Team& team, int window) {
  switch (task.op) {
    case schedule::Op::scatter: return linear_scatter(task, team.rank(), window);
    case schedule::Op::gather: return linear_gather(task, team.rank(), window);
    default: break;
  }
  const schedule::Hosts& hosts = team.hosts();
  return hosts.count() > 1 ? hierarchical_alltoall(task, team.rank(), hosts, window)
                           : scattered_alltoall(task, team.rank(), window);
}

}  // namespace

schedule::Method LongPairs::method(schedule::Op op) {
  const bool is_alltoall = op == schedule::Op::alltoall;
  return {is_alltoall ? schedule::Algorithm::scattered : schedule::Algorithm::linear, 1,
          policy::most_at_once};
}

schedule::Schedule LongPairs::schedule(const schedule::Method& method, const schedule::Task& task,
                                       const Team& team) const {
  const auto size = static_cast<schedule::Block>(task.size);
  const bool is_alltoall = task.op == schedule::Op::alltoall;
  // Where a rank has one block, that is the root's.
  const auto is_long = [&](schedule::Block block) {
    const bool is_own = task.origin(block) == team.rank();
    const std::vector<bool>& marks = is_own ? sent_ : received_;
    if (marks.empty()) return false;
    const schedule::Block peer = !is_alltoall ? block : is_own ? block % size : block / size;
    return static_cast<bool>(marks[marks.size() == size ? static_cast<std::size_t>(peer) : 0]);
  };
  schedule::Schedule found = restricted(whole(task, team, method.window), is_long);
  // Few of them go at once. What is there already keeps no rank waiting that has more of them, and
  // goes round by round.
  const auto most = static_cast<std::size_t>(method.window);
  if (found.sends.size() > most || found.receives.size() > most) return found;
  for (auto* transfers : {&found.sends, &found.receives}) {
    for (schedule::Transfer& transfer : *transfers) transfer.round = 0;
  }
  found.rounds = 1;
  return found;
}

}  // namespace mpress::engine
