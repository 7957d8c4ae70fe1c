#include "schedule/moves/linear.hpp"

#include "schedule/builder.hpp"

namespace mpress::schedule {

Schedule linear_bcast(const Task& task, int rank) {
  Builder builder(task, Op::bcast, rank);
  const Circle circle(task.size, task.root);
  for (int segment = 0; segment < task.segments; ++segment) {
    if (rank != task.root) {
      builder.block(segment);
      builder.receive(task.root, segment);
      continue;
    }
    for (int place = 1; place < task.size; ++place) {
      builder.block(segment);
      builder.send(circle.rank(place), segment);
    }
  }
  return builder.finish(task.size == 1 ? 0 : task.segments);
}

namespace {

Schedule linear(const Task& task, int rank, int window, Op op) {
  Builder builder(task, op, rank);
  require_at_least("window", window, 1);
  const Circle circle(task.size, task.root);
  if (rank != task.root) {
    builder.block(rank);
    builder.receive(task.root, (circle.place(rank) - 1) / window);
  } else {
    for (int place = 1; place < task.size; ++place) {
      builder.block(circle.rank(place));
      builder.send(circle.rank(place), (place - 1) / window);
    }
  }
  return builder.finish(divided_up(task.size - 1, window));
}

}  // namespace

Schedule linear_scatter(const Task& task, int rank, int window) {
  return linear(task, rank, window, Op::scatter);
}

Schedule linear_gather(const Task& task, int rank, int window) {
  return reversed(linear(task, rank, window, Op::gather));
}

}  // namespace mpress::schedule
