// Straight from each origin to each destination, in orders in which no rank is met by all at once.
//
// n ranks. Busiest: the blocks that the busiest rank sends, or receives, whichever are more.
//
// | algorithm           | rounds               | busiest | in all    |
// |---------------------|----------------------|---------|-----------|
// | pairwise_alltoall   | n - 1                | n - 1   | n (n - 1) |
// | scattered_alltoall  | ceil((n-1) / window) | n - 1   | n (n - 1) |
// | scattered_allgather | ceil((n-1) / window) | n - 1   | n (n - 1) |
#pragma once

#include "schedule/schedule.hpp"

namespace mpress::schedule {

/// One partner each way a round: to rank + round, from rank - round. For large blocks. "pairwise"
/// in Open MPI; MPICH's has partners exchange where there is a power of two.
Schedule pairwise_alltoall(const Task& task, int rank);

/// To the `window` next ranks in one round, from as many before. For blocks of middling size, and
/// for large ones where links to different ranks add up. "scattered" in MPICH, "linear" with a
/// bound in Open MPI. `window`: at least 1; size - 1 and more: all at once.
Schedule scattered_alltoall(const Task& task, int rank, int window);

/// The same with one block for all: nothing is forwarded. For ranks that all reach one another
/// equally well, as GPUs behind one switch. "direct" in UCC's and NCCL's words. `window`: as above.
Schedule scattered_allgather(const Task& task, int rank, int window);

}  // namespace mpress::schedule
