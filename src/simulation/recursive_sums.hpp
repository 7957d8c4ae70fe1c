// Reductions by partners whose numbers differ in one bit, with a remainder stage where the ranks
// are no power of two: of the first 2 r ranks, the even ones fold what they bring into their
// neighbours and wait; in the end these fold out what the even ones want.
//
// n ranks, p = 2^floor(log2 n), r = n - p, f = 1 where r > 0, else 0. Busiest: the blocks that the
// busiest rank sends, or receives, whichever are more.
//
// | algorithm                        | blocks | rounds       | busiest    | in all         |
// |----------------------------------|--------|--------------|------------|----------------|
// | recursive_halving_reduce_scatter | n      | log2 p + 2 f | (1)        | n (n - 1) + r  |
// | recursive_doubling_allreduce     | 1      | log2 p + 2 f | log2 p + f | p log2 p + 2 r |
//
// (1) f n + p - 1 + sum over j < log2 p of min(r, 2^j); so n - 1 for a power of two. Rank 1 has it:
//     the first half of the partners always has most blocks.
//
// R. Thakur et al., "Optimization of Collective Communication Operations in MPICH", IJHPCA 19(1),
// 2005; "recursive_halving" and "recursive_doubling" in MPICH. gZCCL (ICS 2024, sections 3.3.3 and
// 3.3.4) takes the second, with this remainder stage, for GPUs: each time the whole vector is
// encoded, and no piece of it is too short to keep a GPU busy.
#pragma once

#include "schedule/schedule.hpp"
#include "simulation/sum_task.hpp"

namespace mpress::simulation {

/// Partners exchange what the other one's half of the ranks wants, halves get shorter. A
/// contribution passes log2 p + f hops at most, and one more to an even rank of the remainder.
Schedule recursive_halving_reduce_scatter(const SumTask& task, int rank);

/// Partners exchange all that they have added up. Few rounds, long blocks.
Schedule recursive_doubling_allreduce(const SumTask& task, int rank);

}  // namespace mpress::simulation
