// k-nomial trees. Binomial ones are those of radix 2.
//
// n ranks, s segments, radix k, L = ceil(log_k n), c(n, k) = (L-1) (k-1) + floor((n-1) / k^(L-1)):
// the root's children. Busiest: the blocks that the busiest rank sends, or receives, whichever are
// more. z(v, k): the digits of v, of base k, that are not zero.
//
// | algorithm                        | rounds | busiest   | in all                       |
// |----------------------------------|--------|-----------|------------------------------|
// | knomial_bcast                    | s L    | s c(n, k) | s (n - 1)                    |
// | knomial_scatter, knomial_gather  | L      | n - 1     | sum over v < n of z(v, k),   |
// |                                  |        |           | n L (k-1) / k for n = k^L    |
#pragma once

#include "schedule/schedule.hpp"

namespace mpress::schedule {

/// Each round multiplies by `radix` how many ranks have a segment; a rank sends to radix - 1 others
/// in one round. Segments follow one another, so with rounds under way at once the tree is a
/// pipeline. For short messages. "tree" of kind knomial in MPICH, "knomial" in Open MPI and UCC.
/// `radix`: at least 2.
Schedule knomial_bcast(const Task& task, int rank, int radix);

/// "binomial" in MPICH and Open MPI.
Schedule binomial_bcast(const Task& task, int rank);

/// A rank gets the blocks of its whole subtree, and passes on what is not its own. For short
/// messages: it has fewer rounds than linear_scatter, and moves more. `radix`: at least 2.
Schedule knomial_scatter(const Task& task, int rank, int radix);
Schedule binomial_scatter(const Task& task, int rank);

/// The scatter backwards. `radix`: at least 2.
Schedule knomial_gather(const Task& task, int rank, int radix);
Schedule binomial_gather(const Task& task, int rank);

}  // namespace mpress::schedule
