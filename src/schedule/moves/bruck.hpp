// Bruck's algorithms: as few rounds as there can be, for any number of ranks.
// J. Bruck et al., "Efficient Algorithms for All-to-All Communications in Multiport Message-Passing
// Systems", IEEE TPDS 8(11), 1997. Radix k is their k - 1 ports: a rank has k - 1 partners a round.
//
// n ranks, radix k, L = ceil(log_k n). Busiest: the blocks that the busiest rank sends, or
// receives, whichever are more. z(v, k): the digits of v, of base k, that are not zero.
//
// | algorithm       | rounds | busiest                   | in all    |
// |-----------------|--------|---------------------------|-----------|
// | bruck_allgather | L      | n - 1                     | n (n - 1) |
// | bruck_alltoall  | L      | Z = sum, v < n, of z(v,k) | n Z       |
//
// Blocks are opaque, so nobody turns anything round before or after, as those do who send arrays.
#pragma once

#include "schedule/schedule.hpp"

namespace mpress::schedule {

/// For short blocks: each round multiplies by `radix` what a rank has. "brucks" in MPICH, "bruck"
/// in Open MPI. `radix`: at least 2.
Schedule bruck_allgather(const Task& task, int rank, int radix = 2);

/// For short blocks: a block goes in as many steps as its distance (destination - origin, modulo n)
/// has digits that are not zero, the last digit first. "brucks" in MPICH, "modified bruck" in Open
/// MPI. `radix`: at least 2.
Schedule bruck_alltoall(const Task& task, int rank, int radix = 2);

}  // namespace mpress::schedule
