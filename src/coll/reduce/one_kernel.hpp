// Sums of szp on a host's devices, which one kernel a member makes in the place of the two shots
// (coll/symmetric/joint_sum). Members offer it to each other with the range of their contributions.
// Some such sums begin blind (coll/symmetric/blind_sums).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "coll/reduce/bounded_coding.hpp"
#include "coll/reduce/reduction_run.hpp"
#include "coll/symmetric/blind_sums.hpp"
#include "coll/symmetric/joint_sum.hpp"

namespace mpress::engine {

class OneKernel {
 public:
  explicit OneKernel(ReductionRun& run) : run_(run), task_(run.task) {}

  /// How a reduction goes on. All members find the same.
  enum class Next : unsigned char { find_range, kernel, two_shots, end };

  /// May a sum begin before the range is known? Not where it could not be made again. Where members
  /// do not find the same they look for the range after all.
  bool may_be_blind() const;

  /// Adds to `own`, which this member tells the others, whether it can.
  void offer(ContributionSummary& own);

  /// Once all summaries have come, and run.agreed follows from them. An error that one had before
  /// the exchange all know of by then.
  Next after_exchange(std::span<const ContributionSummary> summaries);

  /// Never waits. True once the kernel is over.
  bool advance() { return sum_->advance(); }
  Next after_kernel();

  /// Are there results that stand if the range of all contributions turns out to be as expected?
  bool has_blind_results() const { return blind_grounds_.has_value(); }

  /// Has a member failed in a blind sum? Then it does not exchange its range with those that have
  /// all of the sum: the call is over with an error, of which the others learn.
  bool ends_for_failure();

  /// How the call counts.
  trace::Called called() const;

 private:
  bool is_relative() const { return task_.spec.bound == Bound::rel; }
  bool may_serve() const;
  bool begins(std::span<const ContributionSummary> summaries);
  bool do_quanta_travel() const;
  std::optional<codec::Grid> blind_grid() const;
  std::optional<codec::Grounds> expected_grounds() const;
  BlindSums::Like like() const { return {task_.reduction.type, task_.reduction.count}; }
  BlindSums& blind_sums() const;
  bool do_blind_results_stand() const;
  void count() const;

  ReductionRun& run_;
  const ReductionTask& task_;
  std::optional<JointSum> sum_;                  ///< from its offer on
  bool serves_ = false;                          ///< the results are its own, as is known so far
  std::optional<codec::Grounds> blind_grounds_;  ///< of blind results
  std::uint64_t looks_for_failure_at_ns_ = 0;
};

}  // namespace mpress::engine
