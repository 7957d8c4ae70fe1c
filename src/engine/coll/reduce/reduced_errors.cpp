// What members of a reduction without a bound on the error tell each other at its end, where errors
// are measured: those of what they have encoded, from which all know what the result may err by.

#include <algorithm>
#include <limits>

#include "codec/float_environment.hpp"
#include "engine/coll/reduce/reduced_call.hpp"
#include "schedule/moves/bruck.hpp"

namespace mpress::engine {

/// An exchange of `bytes` bytes of each member, which lie at `all` in the order of the ranks.
std::unique_ptr<Movement> ReducedCall::share_with_all(void* all, std::size_t bytes) const {
  const Blocks blocks(team_.size(), static_cast<MPI_Count>(bytes), MPI_BYTE);
  const schedule::Task task{schedule::Op::allgather, team_.size()};
  return movement(false, task.op, {}, {all, {}, blocks},
                  schedule::bruck_allgather(task, team_.rank()), nullptr);
}

/// What goes wrong with this is no error of the call, whose results are there: but what a member
/// does not tell might be anything.
void ReducedCall::begin_telling() {
  phase_ = Phase::telling;
  all_errors_.assign(static_cast<std::size_t>(team_.size()), {});
  all_errors_[static_cast<std::size_t>(team_.rank())] = errors_;
  movement_ = share_with_all(all_errors_.data(), sizeof(Errors));
}

/// What the result may err by, from what all members have measured. Errors of summands add up; of
/// a minimum they do not. A piece has one owner, who encodes its result.
double ReducedCall::joined_error() const {
  if (movement_->runner().code() != MPI_SUCCESS) return std::numeric_limits<double>::infinity();
  return compute([&] {
    Errors all;
    const bool is_sum = reduction_.how == codec::Combine::sum;
    const auto join = [&](double& known, double more) {
      known = is_sum ? known + more : std::max(known, more);
    };
    for (const Errors& one : all_errors_) {
      join(all.brought, one.brought);
      join(all.passed_on, one.passed_on);
      all.result = std::max(all.result, one.result);
    }
    return all.brought + all.passed_on + all.result;
  });
}

}  // namespace mpress::engine
