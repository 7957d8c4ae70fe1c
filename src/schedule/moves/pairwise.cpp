#include "schedule/moves/pairwise.hpp"

#include "schedule/builder.hpp"

namespace mpress::schedule {
namespace {

Block pair_block(const Task& task, int origin, int destination) {
  return static_cast<Block>(origin) * static_cast<Block>(task.size) +
         static_cast<Block>(destination);
}

}  // namespace

Schedule pairwise_alltoall(const Task& task, int rank) { return scattered_alltoall(task, rank, 1); }

Schedule scattered_alltoall(const Task& task, int rank, int window) {
  Builder builder(task, Op::alltoall, rank);
  require_at_least("window", window, 1);
  const Circle circle(task.size, rank);
  for (int distance = 1; distance < task.size; ++distance) {
    const int round = (distance - 1) / window;
    const int to = circle.rank(distance);
    builder.block(pair_block(task, rank, to));
    builder.send(to, round);
    const int from = circle.rank(task.size - distance);
    builder.block(pair_block(task, from, rank));
    builder.receive(from, round);
  }
  return builder.finish(divided_up(task.size - 1, window));
}

Schedule scattered_allgather(const Task& task, int rank, int window) {
  Builder builder(task, Op::allgather, rank);
  require_at_least("window", window, 1);
  const Circle circle(task.size, rank);
  for (int distance = 1; distance < task.size; ++distance) {
    const int round = (distance - 1) / window;
    builder.block(rank);
    builder.send(circle.rank(distance), round);
    const int from = circle.rank(task.size - distance);
    builder.block(from);
    builder.receive(from, round);
  }
  return builder.finish(divided_up(task.size - 1, window));
}

}  // namespace mpress::schedule
