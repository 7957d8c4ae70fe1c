// All to or from the root, without forwarding.
//
// n ranks, s segments. Busiest: the blocks that the busiest rank sends, or receives, whichever are
// more. In all: the sum of what the ranks send.
//
// | algorithm      | rounds               | busiest   | in all    |
// |----------------|----------------------|-----------|-----------|
// | linear_bcast   | s                    | s (n - 1) | s (n - 1) |
// | linear_scatter | ceil((n-1) / window) | n - 1     | n - 1     |
// | linear_gather  | ceil((n-1) / window) | n - 1     | n - 1     |
//
// With one rank no algorithm of this layer has any round.
#pragma once

#include "schedule/schedule.hpp"

namespace mpress::schedule {

/// The root sends each segment to all in one round. For links on which many read what was written
/// once, and for few ranks. "basic linear" in Open MPI.
Schedule linear_bcast(const Task& task, int rank);

/// The root sends to `window` ranks a round, beginning with the one after it. For large blocks:
/// nothing is forwarded, and the root's link is what bounds any scatter of large blocks. "linear"
/// in Open MPI. `window`: at least 1.
Schedule linear_scatter(const Task& task, int rank, int window);

/// The root receives from `window` ranks a round, so that no more than these send to it at once.
/// "linear with synchronization" in Open MPI bounds that, too. `window`: at least 1.
Schedule linear_gather(const Task& task, int rank, int window);

}  // namespace mpress::schedule
