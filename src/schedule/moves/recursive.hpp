// Recursive doubling: partners whose ranks differ in one bit exchange all that they have.
//
// n ranks. Busiest: the blocks that the busiest rank sends, or receives, whichever are more.
//
// | algorithm                    | rounds | busiest | in all    |
// |------------------------------|--------|---------|-----------|
// | recursive_doubling_allgather | log2 n | n - 1   | n (n - 1) |
#pragma once

#include "schedule/schedule.hpp"

namespace mpress::schedule {

constexpr bool is_power_of_two(int n) { return n > 0 && (n & (n - 1)) == 0; }

/// For short blocks: few rounds, the first of them between neighbours, both ways between the same
/// two. The ranks have to be a power of two (else std::invalid_argument): with others
/// bruck_allgather has the fewest rounds, and needs no folding. "recursive doubling" in MPICH and
/// Open MPI.
Schedule recursive_doubling_allgather(const Task& task, int rank);

}  // namespace mpress::schedule
