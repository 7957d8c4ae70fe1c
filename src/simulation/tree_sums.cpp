#include "simulation/tree_sums.hpp"

#include "schedule/moves/tree.hpp"

namespace mpress::simulation {

Schedule binomial_reduce(const SumTask& task, int rank) {
  const Builder checked = builder_of(task, Reduction::reduce, rank);
  Schedule up =
      reversed(schedule::binomial_bcast({schedule::Op::bcast, task.size, task.root}, rank));
  for (Transfer& transfer : up.receives) transfer.combines = true;
  return up;
}

}  // namespace mpress::simulation
