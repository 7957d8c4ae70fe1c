#include "coll/reduce/reduced_call.hpp"

#include <algorithm>

#include "message/messaging.hpp"

namespace mpress::engine {

void ReducedCall::start(FloatModes modes) {
  modes_ = modes;
  run_.status = Status::ok;
  phase_ = Phase::waiting;
  task_.team.take_hints();
  begin();
}

/// Unless another call has its tag.
void ReducedCall::begin() {
  if (!run_.tag.take()) return;
  run_.open();
  kernel_.emplace(run_);
  if (task_.spec.codec != Codec::szp) return begin(OneKernel::Next::two_shots);
  phase_ = Phase::ranges;
  ranges_.emplace(run_, *kernel_);
  kernel_->may_be_blind() ? ranges_->exchange() : ranges_->measure();
}

void ReducedCall::begin(OneKernel::Next next) {
  switch (next) {
    case OneKernel::Next::find_range: phase_ = Phase::ranges; return ranges_->measure();
    case OneKernel::Next::kernel: phase_ = Phase::kernel; return;
    case OneKernel::Next::two_shots:
      phase_ = Phase::shots;
      ranges_.reset();
      first_.emplace(run_, modes_);
      return;
    case OneKernel::Next::end: return end();
  }
}

bool ReducedCall::advance() {
  if (phase_ == Phase::waiting) begin();
  if (phase_ == Phase::ranges) {
    if (ranges_->advance()) {
      begin(kernel_->after_exchange(ranges_->summaries()));
    } else if (ranges_->movement() && kernel_->ends_for_failure()) {
      ranges_->movement()->runner().withdraw();
      end();
    }
  }
  if (phase_ == Phase::kernel && kernel_->advance()) begin(kernel_->after_kernel());
  if (phase_ == Phase::shots && advance_shots()) {
    if (measures_error(task_.messaging, task_.spec)) {
      phase_ = Phase::errors;
      errors_.emplace(run_);
    } else {
      end();
    }
  }
  if (phase_ == Phase::errors && errors_->advance()) end();
  return phase_ == Phase::over;
}

/// The second begins while some of the first is under way, where that may be.
bool ReducedCall::advance_shots() {
  const bool is_first_over = first_->advance();
  if (!second_) {
    if (!is_first_over && !first_->may_combine()) return false;
    second_.emplace(run_, first_->pieces());
  }
  if (!second_->advance(is_first_over)) return false;
  second_.reset();
  first_.reset();
  run_.copy.reset();
  return true;
}

/// The record tells how far results may be off.
void ReducedCall::end() {
  ranges_.reset();
  errors_.reset();
  run_.copy.reset();
  if (run_.status.is_ok()) {
    note(task_.messaging.record.row({trace::Direction::complete, called(), trace::any_peer}),
         run_.agreed.loss);
  }
  run_.tag.give();
  phase_ = Phase::over;
}

/// Those under way, in the order in which they began.
std::array<Movement*, 5> ReducedCall::movements() const {
  return {ranges_ ? ranges_->movement() : nullptr, first_ ? first_->contributions() : nullptr,
          first_ ? first_->host_sums() : nullptr, second_ ? second_->movement() : nullptr,
          errors_ ? errors_->movement() : nullptr};
}

bool ReducedCall::needs_host() const {
  return std::ranges::any_of(movements(), [](const Movement* movement) {
    return movement && movement->runner().needs_host();
  });
}

void ReducedCall::await(bool is_awaited) {
  run_.is_awaited = is_awaited;
  for (Movement* const movement : movements()) {
    if (movement) movement->runner().await(is_awaited);
  }
}

/// Not where this rank itself adds payloads, or has to look whether other members live.
bool ReducedCall::wait() {
  if (run_.agreed.adds_quanta || (kernel_ && kernel_->has_blind_results())) return false;
  const auto all = movements();
  const auto moving = std::ranges::find_if(all, [](const Movement* one) { return one != nullptr; });
  return moving != all.end() && (*moving)->runner().wait();
}

}  // namespace mpress::engine
