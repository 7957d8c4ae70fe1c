// The first phase of a reduction with a bound on the error: members tell each other the range of
// their contributions, from which all find the same way to encode these.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "coll/reduce/bounded_coding.hpp"
#include "coll/reduce/one_kernel.hpp"
#include "coll/reduce/reduction_run.hpp"

namespace mpress::engine {

class RangeExchange {
 public:
  /// `kernel` offers itself in each exchange.
  RangeExchange(ReductionRun& run, OneKernel& kernel)
      : run_(run), task_(run.task), kernel_(kernel) {}

  /// Begins with the range of this rank's contribution, if that is not known, then exchanges.
  void measure();

  /// Begins with what is known by now.
  void exchange();

  /// Never waits. True once all have come: then run.agreed follows from them.
  bool advance();

  /// By rank.
  std::span<const ContributionSummary> summaries() const { return summaries_; }

  /// Null while a device finds the range.
  Movement* movement() const { return movement_.get(); }

 private:
  bool pays() const;
  double share_in_windows() const;

  ReductionRun& run_;
  const ReductionTask& task_;
  OneKernel& kernel_;
  std::vector<ContributionSummary> summaries_;
  std::unique_ptr<Movement> movement_;
};

}  // namespace mpress::engine
