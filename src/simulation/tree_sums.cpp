#include "simulation/tree_sums.hpp"

#include "schedule/moves/tree.hpp"

namespace mpress::schedule {

Schedule binomial_reduce(const SumTask& task, int rank) {
  const Builder checked = builder_of(task, Reduction::reduce, rank);
  Schedule up = reversed(binomial_bcast({Op::bcast, task.size, task.root}, rank));
  for (Transfer& transfer : up.receives) transfer.combines = true;
  return up;
}

}  // namespace mpress::schedule
