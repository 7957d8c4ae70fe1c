#include "coll/reduce/error_exchange.hpp"

#include <algorithm>
#include <limits>

#include "codec/float_environment.hpp"

namespace mpress::engine {

ErrorExchange::ErrorExchange(ReductionRun& run)
    : run_(run), errors_(static_cast<std::size_t>(run.task.team.size())) {
  errors_[static_cast<std::size_t>(run.task.team.rank())] = run.errors;
  movement_ = run.all_gather(errors_.data(), sizeof(StageErrors));
}

bool ErrorExchange::advance() {
  if (!movement_->runner().advance()) return false;
  run_.agreed.loss.measured = error_of_result();
  return true;
}

/// Errors of summands add up; of a minimum they do not. A piece has one owner, who encodes its
/// result.
double ErrorExchange::error_of_result() const {
  if (!movement_->runner().status().is_ok()) return std::numeric_limits<double>::infinity();
  return compute([&] {
    StageErrors all;
    const bool is_sum = run_.task.reduction.how == codec::Combine::sum;
    const auto join = [&](double& known, double more) {
      known = is_sum ? known + more : std::max(known, more);
    };
    for (const StageErrors& one : errors_) {
      join(all.contribution, one.contribution);
      join(all.host_sum, one.host_sum);
      all.result = std::max(all.result, one.result);
    }
    return all.contribution + all.host_sum + all.result;
  });
}

}  // namespace mpress::engine
