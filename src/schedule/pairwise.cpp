#include "schedule/pairwise.hpp"

#include "schedule/builder.hpp"
#include "schedule/recursive.hpp"

namespace mpress::schedule {
namespace {

Block pair_block(const Task& task, int origin, int destination) {
  return static_cast<Block>(origin) * static_cast<Block>(task.size) +
         static_cast<Block>(destination);
}

}  // namespace

Schedule pairwise_alltoall(const Task& task, int rank) {
  if (!is_power_of_two(task.size)) return scattered_alltoall(task, rank, 1);
  Builder builder(task, Op::alltoall, rank);
  for (int round = 0; round < task.size - 1; ++round) {
    const int peer = rank ^ (round + 1);
    builder.block(pair_block(task, rank, peer));
    builder.send(peer, round);
    builder.block(pair_block(task, peer, rank));
    builder.receive(peer, round);
  }
  return builder.finish(task.size - 1);
}

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
