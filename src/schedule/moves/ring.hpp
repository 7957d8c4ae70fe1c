// Each rank sends to the next one, and receives from the one before.
//
// n ranks, s segments. Busiest: the blocks that the busiest rank sends, or receives, whichever are
// more.
//
// | algorithm      | rounds    | busiest | in all    |
// |----------------|-----------|---------|-----------|
// | chain_bcast    | n + s - 2 | s       | s (n - 1) |
// | ring_allgather | n - 1     | n - 1   | n (n - 1) |
#pragma once

#include "schedule/schedule.hpp"

namespace mpress::schedule {

/// Segment by segment along the ranks, beginning with the root. For large messages, with many more
/// segments than ranks: no rank sends more than it has. "pipeline" and "chain" in Open MPI, NCCL's
/// ring.
Schedule chain_bcast(const Task& task, int rank);

/// What came in the last round goes on in this one. For large blocks where neighbours are close to
/// one another, and each has but one good link. "ring" in MPICH, Open MPI and NCCL.
Schedule ring_allgather(const Task& task, int rank);

}  // namespace mpress::schedule
