#include "schedule/moves/tree.hpp"

#include "schedule/builder.hpp"
#include "schedule/moves/knomial.hpp"

namespace mpress::schedule {

Schedule knomial_bcast(const Task& task, int rank, int radix) {
  Builder builder(task, Op::bcast, rank);
  require_at_least("radix", radix, 2);
  const Circle circle(task.size, task.root);
  const Knomial tree(task.size, radix);
  const int place = circle.place(rank);
  for (int segment = 0; segment < task.segments; ++segment) {
    const int begin = segment * tree.rounds();
    if (place != 0) {
      builder.block(segment);
      builder.receive(circle.rank(tree.parent(place)), begin + tree.round(place));
    }
    tree.for_each_child(place, [&](int child, int round) {
      builder.block(segment);
      builder.send(circle.rank(child), begin + round);
    });
  }
  return builder.finish(task.segments * tree.rounds());
}

Schedule binomial_bcast(const Task& task, int rank) { return knomial_bcast(task, rank, 2); }

namespace {

Schedule knomial(const Task& task, int rank, int radix, Op op) {
  Builder builder(task, op, rank);
  require_at_least("radix", radix, 2);
  const Circle circle(task.size, task.root);
  const Knomial tree(task.size, radix);
  scatter_down(builder, tree, circle, circle.place(rank),
               [&](int place) { return circle.rank(place); });
  return builder.finish(tree.rounds());
}

}  // namespace

Schedule knomial_scatter(const Task& task, int rank, int radix) {
  return knomial(task, rank, radix, Op::scatter);
}

Schedule binomial_scatter(const Task& task, int rank) { return knomial_scatter(task, rank, 2); }

Schedule knomial_gather(const Task& task, int rank, int radix) {
  return reversed(knomial(task, rank, radix, Op::gather));
}

Schedule binomial_gather(const Task& task, int rank) { return knomial_gather(task, rank, 2); }

}  // namespace mpress::schedule
