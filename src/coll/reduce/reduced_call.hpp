// A reduction that mpress serves in two shots: each rank combines one piece of the data, to which
// all ranks contribute, and passes on the result. It is a sequence of phases, a type each, whose
// states docs/dev/reductions.md has as a table:
// - waiting, while another call has its tag;
// - RangeExchange, where there is a bound on the error: members tell each other the range of their
//   contributions;
// - OneKernel, of szp on a host's devices: one kernel a member does all that follows;
// - FirstShot and SecondShot, of which some may be under way together;
// - ErrorExchange, where errors are measured.
#pragma once

#include <array>
#include <optional>

#include "coll/collective_operation.hpp"
#include "coll/reduce/error_exchange.hpp"
#include "coll/reduce/first_shot.hpp"
#include "coll/reduce/one_kernel.hpp"
#include "coll/reduce/range_exchange.hpp"
#include "coll/reduce/reduction_run.hpp"
#include "coll/reduce/reduction_task.hpp"
#include "coll/reduce/second_shot.hpp"

namespace mpress::engine {

class ReducedCall final : public CollectiveOperation {
 public:
  /// See ReductionTask.
  ReducedCall(Messaging& messaging, Team& team, const ReductionTask::Of& of)
      : task_(messaging, team, of), run_(task_) {}

  void start(FloatModes modes) override;
  bool advance() override;
  bool needs_host() const override;
  void await(bool is_awaited) override;
  bool wait() override;
  trace::Called called() const override { return kernel_ ? kernel_->called() : task_.called(); }
  Status status() const override { return run_.status; }
  double bound() const override { return run_.agreed.loss.announced_bound(); }

 private:
  enum class Phase : unsigned char { waiting, ranges, kernel, shots, errors, over };

  void begin();
  void begin(OneKernel::Next next);
  bool advance_shots();
  void end();
  std::array<Movement*, 5> movements() const;

  const ReductionTask task_;
  ReductionRun run_;
  FloatModes modes_;  ///< of the call that is under way
  Phase phase_ = Phase::over;
  std::optional<OneKernel> kernel_;  ///< of the last start
  std::optional<RangeExchange> ranges_;
  std::optional<FirstShot> first_;
  std::optional<SecondShot> second_;
  std::optional<ErrorExchange> errors_;
};

}  // namespace mpress::engine
