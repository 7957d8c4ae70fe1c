#include "coll/reduce/one_kernel.hpp"

#include "codec/codec.hpp"
#include "codec/float_environment.hpp"
#include "codec/sum_grid.hpp"
#include "coll/blocks/contribution.hpp"
#include "coll/pieces.hpp"
#include "coll/symmetric/moved.hpp"
#include "gpu/joint_sum.hpp"
#include "message/messaging.hpp"

namespace mpress::engine {
namespace {

/// Between two looks, each of which takes several system calls.
constexpr std::uint64_t failure_pause_ns = 1'000'000;

/// Do results go where the input lies? By MPI only in place.
bool is_overwritten(const ReductionRun& run) {
  const std::size_t bytes = run.task.reduction.bytes();
  const std::byte* const results = run.task.results;
  return run.task.reduction.is_in_place ||
         (run.input < results + bytes && results < run.input + bytes);
}

}  // namespace

/// As all members know.
bool OneKernel::may_serve() const {
  return task_.served.is_blocking && task_.reduction.how == codec::Combine::sum &&
         task_.has_joint_memory() && fit_in_rows(task_.facts, task_.reduction.type, task_.begins);
}

BlindSums& OneKernel::blind_sums() const {
  return JointMemories::of(task_.messaging, task_.team).blind_sums;
}

/// Of a sum that begins before the range is known; with a bound that is absolute.
std::optional<codec::Grid> OneKernel::blind_grid() const {
  return codec::blind_grid(task_.reduction.type, task_.spec.value, task_.team.size());
}

/// With a bound that is relative.
std::optional<codec::Grounds> OneKernel::expected_grounds() const {
  if (!is_relative()) return std::nullopt;
  return blind_sums().expected(like());
}

bool OneKernel::may_be_blind() const {
  if (task_.call.family != Family::allreduce || !run_.status.is_ok() || run_.device == gpu::host ||
      is_overwritten(run_) || !may_serve()) {
    return false;
  }
  if (is_relative()) {
    if (!expected_grounds()) return false;
  } else {
    const auto grid = blind_grid();
    if (!grid || !codec::resolvable(task_.reduction.type, grid->bound)) return false;
  }
  return JointMemories::of(task_.messaging, task_.team).coded_sums.is_open() &&
         blind_sums().may_begin(like());
}

void OneKernel::offer(ContributionSummary& own) {
  if (!run_.range.is_known()) own.expected = expected_grounds().value_or(codec::Grounds{});
  if (!may_serve()) return;
  Team& team = task_.team;
  sum_.emplace(task_.messaging, team, JointMemories::of(task_.messaging, team).coded_sums,
               task_.reduction.type, task_.begins,
               JointSum::goal_of(task_.call.family, team.size(), task_.root), std::nullopt);
  if (!run_.status.is_ok() || run_.device == gpu::host) return;
  // Of MPI_Reduce_scatter in place results lie where others' parts were.
  if (task_.is_scattered() && task_.reduction.is_in_place) return;
  const bool gets_results =
      task_.gets_results() && (!task_.is_scattered() || task_.own_count() > 0);
  std::byte* const results = gets_results ? task_.results : nullptr;
  if (results && !run_.lies_beside(results)) return;
  own.joint = sum_->offer(run_.device, run_.input, results);
}

/// Else all rows would be of elements.
bool OneKernel::do_quanta_travel() const {
  return compute([&] {
    const double step = 2 * run_.agreed.coding.spec.value * codec::step_shrink;
    return run_.agreed.grounds.most / step + 1 < gpu::joint_sum::reach;
  });
}

OneKernel::Next OneKernel::after_exchange(std::span<const ContributionSummary> summaries) {
  const BoundedCoding& agreed = run_.agreed;
  const bool is_known = agreed.adds_quanta && !agreed.is_blind;
  if (is_relative() && is_known && may_serve() && do_quanta_travel()) {
    blind_sums().learn(like(), agreed.grounds);
  }
  if (!run_.status.is_ok()) {
    if (sum_) sum_->fail();
    return Next::two_shots;
  }
  if (has_blind_results()) {
    serves_ = do_blind_results_stand();
    if (is_relative()) blind_sums().ended(like(), serves_);
    if (serves_) return Next::end;
  }
  if (begins(summaries)) return Next::kernel;
  if (!agreed.is_blind) return Next::two_shots;
  blind_sums().ended(like(), false);
  return Next::find_range;
}

/// Now that all members' ranges are known.
bool OneKernel::do_blind_results_stand() const {
  const BoundedCoding& agreed = run_.agreed;
  if (is_relative()) return agreed.adds_quanta && agreed.grounds == *blind_grounds_;
  return compute([&] { return agreed.greatest <= codec::reached(*blind_grid()); });
}

/// All members find the same, but for one whose exchange failed: the others learn of that.
bool OneKernel::begins(std::span<const ContributionSummary> summaries) {
  const BoundedCoding& agreed = run_.agreed;
  if (!sum_ || !agreed.adds_quanta) return false;
  // A member that knows its range may have results where its input lies.
  if (agreed.is_blind && agreed.are_any_known) return false;
  if (!do_quanta_travel()) return false;
  std::vector<Offer> offers;
  for (const ContributionSummary& one : summaries) offers.push_back(one.joint);
  const codec::Grid grid =
      agreed.is_blind && !is_relative() ? *blind_grid() : codec::grid_of(agreed.coding.spec);
  if (agreed.is_blind && is_relative()) sum_->find_range();
  serves_ = sum_->accept(offers, grid) == Answer::accepted;
  return serves_;
}

OneKernel::Next OneKernel::after_kernel() {
  run_.note(sum_->status());
  const bool is_blind = run_.agreed.is_blind;
  const bool were_quanta = sum_->were_quanta();
  if (run_.status.is_ok()) count();
  if (is_blind && is_relative()) run_.range.set(sum_->range());
  sum_.reset();
  if (!is_blind || !run_.status.is_ok()) return Next::end;
  if (!is_relative()) {
    blind_sums().ended(like(), were_quanta);
    if (were_quanta) return Next::end;
  }
  serves_ = false;
  blind_grounds_ = run_.agreed.grounds;
  looks_for_failure_at_ns_ = trace::now_ns() + failure_pause_ns;
  return Next::find_range;
}

void OneKernel::count() const {
  Messaging& messaging = task_.messaging;
  const Team& team = task_.team;
  const std::size_t others = static_cast<std::size_t>(team.size()) - 1;
  std::size_t raw_bytes = 0;
  for (int member = 0; member < team.size(); ++member) {
    if (member == team.rank()) continue;
    raw_bytes += sum_->raw_bytes_to(member);
    // Kernels count what goes to all members together.
    count_by_kernel(messaging, called(), sum_->way(), team.world_rank(member),
                    {sum_->raw_bytes_to(member), sum_->sent_bytes() / others, Codec::szp},
                    {sum_->raw_bytes_from(member), sum_->received_bytes() / others, Codec::szp});
  }
  learn_ratio(messaging, task_.call, run_.longest_contribution(), team, raw_bytes,
              sum_->sent_bytes());
}

bool OneKernel::ends_for_failure() {
  if (!has_blind_results() || trace::now_ns() < looks_for_failure_at_ns_) return false;
  looks_for_failure_at_ns_ = trace::now_ns() + failure_pause_ns;
  JointMemory& memory = JointMemories::of(task_.messaging, task_.team).coded_sums;
  if (!memory.has_lost_member()) return false;
  memory.tell_failure();
  run_.note(Status::device_failed);
  return true;
}

trace::Called OneKernel::called() const {
  if (!serves_) return task_.called();
  return {task_.call.op, static_cast<std::uint8_t>(schedule::Algorithm::one_kernel)};
}

}  // namespace mpress::engine
