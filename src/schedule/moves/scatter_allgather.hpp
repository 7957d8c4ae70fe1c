// Broadcasts of large messages: the root scatters segments, and the ranks gather them all.
// M. Barnett, R. van de Geijn et al., "Interprocessor Collective Communication Library (InterCom)",
// SHPCC 1994; R. Thakur et al., "Optimization of Collective Communication Operations in MPICH",
// IJHPCA 19(1), 2005, section 4.2.
//
// n ranks, s segments. Busiest: the blocks that the busiest rank sends, or receives, whichever are
// more.
//
// | algorithm                        | s   | rounds                | busiest       | in all    |
// |----------------------------------|-----|-----------------------|---------------|-----------|
// | scatter_ring_bcast               | n   | ceil(log2 n) + n - 1  | 2 (n - 1)     | n (n - 1) |
// | scatter_recursive_doubling_bcast | n   | 2 log2 n              | 2 (n - 1)     | n (n - 1) |
// | two_shot_bcast                   | any | t + 1; s for n = 2    | max(s,(n-2)t) | s (n - 1) |
//
// where t = ceil(s / (n-1)).
//
// Ranks that forward in the scatter have some segments twice in the first two algorithms as they
// are usually written. Both ends know which, so these are left out.
#pragma once

#include "schedule/schedule.hpp"

namespace mpress::schedule {

/// Binomial scatter, then a ring. For large messages and any number of ranks.
/// "scatter_ring_allgather" in MPICH. task.segments has to be task.size (else
/// std::invalid_argument).
Schedule scatter_ring_bcast(const Task& task, int rank);

/// Binomial scatter, then recursive doubling. For messages of middling size; task.size has to be a
/// power of two, and task.segments equal to it (else std::invalid_argument).
/// "scatter_recursive_doubling_allgather" in MPICH.
Schedule scatter_recursive_doubling_bcast(const Task& task, int rank);

/// The root sends each segment to one rank, by turns, and that one in the next round to all others.
/// For large messages between ranks that all reach one another equally well: the root sends
/// everything just once, and n - 1 segments are under way at once. Best with a multiple of n - 1
/// segments.
Schedule two_shot_bcast(const Task& task, int rank);

}  // namespace mpress::schedule
