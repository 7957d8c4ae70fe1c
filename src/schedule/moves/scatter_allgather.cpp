#include "schedule/moves/scatter_allgather.hpp"

#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "schedule/builder.hpp"
#include "schedule/moves/hierarchical.hpp"
#include "schedule/moves/knomial.hpp"
#include "schedule/moves/recursive.hpp"

namespace mpress::schedule {
namespace {

/// What the first two algorithms have in common: places as seen from the root, of which each owns
/// the segment of its number, and has after the scatter those of its subtree.
class Scattered {
 public:
  Scattered(const Task& task, int rank)
      : builder(task, Op::bcast, rank),
        circle(task.size, task.root),
        tree(task.size, 2),
        place(circle.place(rank)) {
    if (task.segments != task.size)
      throw std::invalid_argument("task.segments is " + std::to_string(task.segments) +
                                  ": expected one a rank, " + std::to_string(task.size));
    scatter_down(builder, tree, circle, place, [](int segment) { return segment; });
  }

  bool has(int owner, int segment) const { return segment >= owner && segment < tree.end(owner); }

  Builder builder;
  Circle circle;
  Knomial tree;
  int place;
};

}  // namespace

Schedule scatter_ring_bcast(const Task& task, int rank) {
  Scattered state(task, rank);
  const int size = task.size;
  const int next = (state.place + 1) % size;
  const int previous = (state.place + size - 1) % size;
  for (int step = 0; step < size - 1; ++step) {
    const int round = state.tree.rounds() + step;
    const int out = (state.place + size - step) % size;
    if (!state.has(next, out)) state.builder.block(out);
    state.builder.send(state.circle.rank(next), round);
    const int in = (previous + size - step) % size;
    if (!state.has(state.place, in)) state.builder.block(in);
    state.builder.receive(state.circle.rank(previous), round);
  }
  return state.builder.finish(state.tree.rounds() + size - 1);
}

Schedule scatter_recursive_doubling_bcast(const Task& task, int rank) {
  if (!is_power_of_two(task.size))
    throw std::invalid_argument("task.size is " + std::to_string(task.size) +
                                ": recursive doubling expects a power of two");
  Scattered state(task, rank);
  int round = state.tree.rounds();
  for (int distance = 1; distance < task.size; distance *= 2, ++round) {
    const int peer = state.place ^ distance;
    const auto add_half = [&](int of, int reader) {
      const int first = of & ~(distance - 1);
      for (int segment = first; segment < first + distance; ++segment)
        if (!state.has(reader, segment)) state.builder.block(segment);
    };
    add_half(state.place, peer);
    state.builder.send(state.circle.rank(peer), round);
    add_half(peer, state.place);
    state.builder.receive(state.circle.rank(peer), round);
  }
  return state.builder.finish(round);
}

Schedule two_shot_bcast(const Task& task, int rank) {
  const Builder checked(task, Op::bcast, rank);
  std::vector<int> each_its_own(static_cast<std::size_t>(task.size));
  std::iota(each_its_own.begin(), each_its_own.end(), 0);
  return hierarchical_two_shot_bcast(task, rank, Hosts(each_its_own));
}

}  // namespace mpress::schedule
