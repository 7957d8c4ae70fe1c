// Collective calls between the steps of a round.
#pragma once

#include <map>
#include <vector>

#include "plan.hpp"

namespace stress {

class CollectivePlans {
 public:
  CollectivePlans(const Settings& settings, Random& random, Round& round)
      : settings_(settings), random_(random), round_(round) {}

  /// Adds a step with one, where a communicator is fit for it. It blocks at most for members that
  /// have not come to this step.
  void begin_one();

  /// Adds a step that ends some of a rank's that do not block; all members have begun them. False:
  /// none is under way.
  bool end_some();

  /// Is one under way on a communicator?
  bool are_under_way_on(int comm) const;

 private:
  std::vector<int> usable_comms() const;

  const Settings& settings_;
  Random& random_;
  Round& round_;
  std::map<int, std::vector<int>> under_way_;  ///< by rank
};

}  // namespace stress
