// The long pairs of a collective call whose members know no counts but those of their own pairs:
// MPI_Scatterv, Gatherv, Alltoallv, Alltoallw, and those of neighbourhoods. Both sides of a pair
// know its bytes, so both know whether it travels as a block; MPI's own call moves the others, and
// is given none of these.
#pragma once

#include <utility>
#include <vector>

#include "schedule/algorithms.hpp"
#include "schedule/schedule.hpp"

namespace mpress::engine {

class Team;

/// The long pairs of one rank. A pair is two ranks: MPI moves what a rank has for itself, but for
/// an edge of a neighbourhood from the rank to itself.
class LongPairs {
 public:
  /// By block that is sent, and by block that is received, whether it belongs to one; empty where
  /// none does.
  LongPairs(std::vector<bool> sent, std::vector<bool> received)
      : sent_(std::move(sent)), received_(std::move(received)) {}

  bool any() const { return !sent_.empty() || !received_.empty(); }

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
  std::vector<bool> sent_;
  std::vector<bool> received_;
};

}  // namespace mpress::engine
