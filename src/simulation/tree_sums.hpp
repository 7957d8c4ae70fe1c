// Reductions up a tree.
//
// n ranks, one block. Busiest: the blocks that the busiest rank sends, or receives, whichever are
// more.
//
// | algorithm       | rounds       | busiest      | in all |
// |-----------------|--------------|--------------|--------|
// | binomial_reduce | ceil(log2 n) | ceil(log2 n) | n - 1  |
#pragma once

#include "schedule/schedule.hpp"
#include "simulation/sum_task.hpp"

namespace mpress::simulation {

/// binomial_bcast backwards: each rank combines what its children send with its own, and sends that
/// to its parent. "binomial" in MPICH and Open MPI.
Schedule binomial_reduce(const SumTask& task, int rank);

}  // namespace mpress::simulation
