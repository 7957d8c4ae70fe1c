// Reductions in which partial sums travel: each hop combines what came with what is there.
//
// A block is a piece of the vector that all ranks bring. Each rank begins with its own contribution
// to every block; a send brings what the rank has of a block when the round begins: its own, or
// what that has become. A receive combines what comes with it, or puts that in its place
// (Transfer::combines). Rules 1 and 4 of schedule.hpp hold; in the place of 2 and 3:
// 2. A rank sends what it has at the beginning of the round, and combines, or replaces, at its end.
// 3. No contribution is combined with a sum that has it already.
//
// So what is said there of runners holds, if one begins a round's sends of a block when its
// receives of earlier rounds are done, and no receive alters what is still to be sent: strictly
// round by round, that is all.
//
// The engine does not run these: a chunk that a codec's quanta cannot tell needs whoever sees all
// contributions (docs/dev/reductions.md). They are what two shots are compared with.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "schedule/builder.hpp"

namespace mpress::simulation {

using schedule::Block;
using schedule::Builder;
using schedule::Schedule;
using schedule::Transfer;

enum class Reduction : std::uint8_t { allreduce, reduce, reduce_scatter };

/// What is to be combined; the same on all ranks. How many pieces the vector is cut into follows
/// from the algorithm: one for each rank, or one.
struct SumTask {
  Reduction reduction;
  int size;      ///< ranks, 0 to size - 1; at least 1
  int root = 0;  ///< of reduce
};

/// Throws std::invalid_argument, with the name of what is wrong, unless `task` is a `reduction` of
/// at least one rank, among which are `rank` and the root.
inline Builder builder_of(const SumTask& task, Reduction reduction, int rank) {
  if (task.reduction != reduction)
    throw std::invalid_argument("task.reduction is not what the algorithm is for");
  schedule::require_at_least("task.size", task.size, 1);
  schedule::require_rank("task.root", task.root, task.size);
  return Builder(task.size, rank);
}

}  // namespace mpress::simulation
