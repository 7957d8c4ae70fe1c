// The last phase of a reduction without a bound on the error, where errors are measured: members
// tell each other the largest errors of what they have encoded, from which all know how far the
// result may be off.
#pragma once

#include <memory>
#include <vector>

#include "coll/reduce/reduction_run.hpp"

namespace mpress::engine {

class ErrorExchange {
 public:
  explicit ErrorExchange(ReductionRun& run);

  /// Never waits. True once it is over: then run.agreed.loss has the error. No error of it is one
  /// of the call, whose results are there: but if a member's do not come, they might be anything.
  bool advance();

  Movement* movement() const { return movement_.get(); }

 private:
  double error_of_result() const;

  ReductionRun& run_;
  std::vector<StageErrors> errors_;  ///< by rank
  std::unique_ptr<Movement> movement_;
};

}  // namespace mpress::engine
