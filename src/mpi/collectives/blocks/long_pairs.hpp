// The long pairs of a collective call whose members know no counts but those of their own pairs:
// MPI_Scatterv, Gatherv, Alltoallv, Alltoallw, and those of neighbourhoods. Both sides of a pair
// know its bytes, so both know whether it travels as a block; MPI's own call moves the others, and
// is given none of these.
#pragma once

#include <vector>

#include "mpi/collectives/operands.hpp"
#include "schedule/algorithms.hpp"
#include "schedule/schedule.hpp"

namespace mpress::engine {

class Team;
class Job;

/// The long pairs of one rank. A pair is two ranks: MPI moves what a rank has for itself, but for
/// an edge of a neighbourhood from the rank to itself.
class LongPairs {
 public:
  /// Looks at each count once, and asks no other rank. `team` is ready. Without any long pair
  /// nothing is allocated.
  LongPairs(const Job& job, const Team& team, const Operands& operands);

  bool any() const { return !sent_.empty() || !received_.empty(); }

  /// Does block `i` that operands.send reads belong to one? And of those that operands.receive
  /// writes?
  bool is_sent(int i) const { return !sent_.empty() && sent_[static_cast<std::size_t>(i)]; }
  bool is_received(int i) const {
    return !received_.empty() && received_[static_cast<std::size_t>(i)];
  }

  /// By which they travel: straight from rank to rank, so that two ends are enough to agree.
  static schedule::Method method(schedule::Op op);

  /// At most method.window blocks each way at once. `task`: the whole call.
  schedule::Schedule schedule(const schedule::Method& method, const schedule::Task& task,
                              const Team& team) const;

 private:
  // By block of either operand; empty where none is long.
  std::vector<bool> sent_;
  std::vector<bool> received_;
};

}  // namespace mpress::engine
