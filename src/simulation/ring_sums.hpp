// Reductions around a ring: each rank sends to the next one, and receives from the one before.
//
// n ranks, as many blocks. Busiest: the blocks that the busiest rank sends, or receives, whichever
// are more.
//
// | algorithm           | rounds    | busiest   | in all      |
// |---------------------|-----------|-----------|-------------|
// | ring_reduce_scatter | n - 1     | n - 1     | n (n - 1)   |
// | ring_allreduce      | 2 (n - 1) | 2 (n - 1) | 2 n (n - 1) |
//
// P. Patarasuk, X. Yuan, "Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations",
// JPDC 69(2), 2009; "ring" in MPICH, Open MPI and NCCL; gZ-Allreduce (Ring) in gZCCL
// (ICS 2024, sections 3.2.3 and 3.3.3).
#pragma once

#include "schedule/schedule.hpp"
#include "simulation/sum_task.hpp"

namespace mpress::simulation {

/// Block b begins at rank b + 1 and goes once around; rank b ends with the sum. A contribution may
/// pass n - 1 hops.
Schedule ring_reduce_scatter(const SumTask& task, int rank);

/// The same, and then ring_allgather: what came goes on as it is.
Schedule ring_allreduce(const SumTask& task, int rank);

}  // namespace mpress::simulation
