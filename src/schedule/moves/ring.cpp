#include "schedule/moves/ring.hpp"

#include "schedule/builder.hpp"

namespace mpress::schedule {

Schedule chain_bcast(const Task& task, int rank) {
  Builder builder(task, Op::bcast, rank);
  if (task.size == 1) return builder.finish(0);
  const Circle circle(task.size, task.root);
  const int place = circle.place(rank);
  for (int segment = 0; segment < task.segments; ++segment) {
    if (place > 0) {
      builder.block(segment);
      builder.receive(circle.rank(place - 1), place - 1 + segment);
    }
    if (place < task.size - 1) {
      builder.block(segment);
      builder.send(circle.rank(place + 1), place + segment);
    }
  }
  return builder.finish(task.size + task.segments - 2);
}

Schedule ring_allgather(const Task& task, int rank) {
  Builder builder(task, Op::allgather, rank);
  const int size = task.size;
  const int next = (rank + 1) % size;
  const int previous = (rank + size - 1) % size;
  for (int round = 0; round < size - 1; ++round) {
    builder.block((rank + size - round) % size);
    builder.send(next, round);
    builder.block((previous + size - round) % size);
    builder.receive(previous, round);
  }
  return builder.finish(size - 1);
}

}  // namespace mpress::schedule
