// Sums of szp on a host's devices, which one kernel a member makes in the place of blocks
// (coll/joint/joint_sum).

#include "codec/codec.hpp"
#include "codec/float_environment.hpp"
#include "codec/szp/format.hpp"
#include "coll/pieces.hpp"
#include "core/staging.hpp"
#include "engine/coll/agreed.hpp"
#include "engine/coll/contribution.hpp"
#include "engine/coll/reduce/reduced_call.hpp"
#include "gpu/joint_sum.hpp"
#include "mpi/job/job.hpp"
#include "mpi/objects/type_info.hpp"

namespace mpress::engine {
namespace {

/// Between two looks, each of which takes several system calls.
constexpr std::uint64_t failure_pause_ns = 1'000'000;

}  // namespace

/// As far as all members know.
bool ReducedCall::have_joint_memory() const {
  return team_.modes().has_memory_of_all() && bytes() <= reach_of(team_).most_in_quanta;
}

/// As all members know.
bool ReducedCall::may_add_jointly() const {
  return served_.is_blocking && reduction_.how == codec::Combine::sum && have_joint_memory() &&
         fit_in_rows(facts_of(job_, team_), reduction_.type, begins_);
}

JointSum::Goal ReducedCall::joint_goal() const {
  return JointSum::goal_of(call_.family, team_.size(), operands_.root);
}

/// What this member tells of whether it can.
void ReducedCall::offer_jointly(ContributionSummary& told) {
  if (!may_add_jointly()) return;
  joint_.emplace(job_, team_, JointMemories::of(job_, team_).coded_sums, reduction_.type, begins_,
                 joint_goal(), std::nullopt);
  if (code_ != MPI_SUCCESS || home_ == gpu::host) return;
  const auto type = mpi::type_info(reduction_.mpi_type());
  const bool gets_results =
      goal_ == Goal::all || is_at_root() || (goal_ == Goal::each && own_elements() > 0);
  std::byte* const results = gets_results ? this->results() : nullptr;
  // Of MPI_Reduce_scatter in place results lie where others' parts were.
  const bool is_overlapped = goal_ == Goal::each && reduction_.is_in_place;
  const bool is_apt =
      type && !is_overlapped &&
      (!results || (is_aligned(results) && device_of(job_, results, *type) == home_));
  if (is_apt) told.joint = joint_->offer(home_, input_, results);
}

/// Else all rows would be of elements.
bool ReducedCall::do_quanta_travel() const {
  return compute([&] {
    const double step = 2 * agreed_.coding.spec.value * codec::szp::step_shrink;
    return agreed_.grounds.most / step + 1 < gpu::joint_sum::reach;
  });
}

/// All members find the same, but for one whose exchange failed: the others learn of that.
bool ReducedCall::begins_jointly() {
  if (!joint_ || !agreed_.adds_quanta) return false;
  // A member that knows its range may have results where its input lies.
  if (agreed_.is_blind && agreed_.are_any_known) return false;
  if (!do_quanta_travel()) return false;
  std::vector<JointSum::Told> told;
  for (const ContributionSummary& one : told_) told.push_back(one.joint);
  const bool is_relative = spec_.bound == Bound::rel;
  const codec::Grid grid =
      agreed_.is_blind && !is_relative ? *blind_grid() : codec::grid_of(agreed_.coding.spec);
  if (agreed_.is_blind && is_relative) joint_->find_range();
  if (joint_->accept(told, grid) != Answer::accepted) return false;
  movement_.reset();
  is_joint_ = true;
  phase_ = Phase::adding_jointly;
  return true;
}

void ReducedCall::count_jointly() const {
  const std::size_t others = static_cast<std::size_t>(team_.size()) - 1;
  std::size_t raw_bytes = 0;
  for (int member = 0; member < team_.size(); ++member) {
    if (member == team_.rank()) continue;
    raw_bytes += joint_->raw_bytes_to(member);
    // Kernels count what goes to all members together.
    count_by_kernel(
        job_, called(), joint_->way(), team_.world_rank(member),
        {joint_->raw_bytes_to(member), joint_->sent_bytes() / others, Codec::szp},
        {joint_->raw_bytes_from(member), joint_->received_bytes() / others, Codec::szp});
  }
  learn_ratio(job_, call_, {own_piece(), spec_}, team_, raw_bytes, joint_->sent_bytes());
}

/// All members find the same: a joint sum, blocks, or that they have to know the range first. An
/// error that one had before the exchange all know of by then.
void ReducedCall::begin_after_exchange() {
  if (code_ != MPI_SUCCESS) {
    if (joint_) joint_->fail();
    return begin_contributions();
  }
  if (has_blind_results_) {
    const bool stand = blind_results_stand();
    if (spec_.bound == Bound::rel) blind_sums().ended(like(), stand);
    is_joint_ = stand;
    if (stand) return end_without_blocks();
  }
  if (begins_jointly()) return;
  if (!agreed_.is_blind) return begin_contributions();
  blind_sums().ended(like(), false);
  begin_measuring();
}

/// Now that all members' ranges are known.
bool ReducedCall::blind_results_stand() const {
  if (spec_.bound == Bound::abs) {
    return compute([&] { return agreed_.greatest <= codec::szp::reached(*blind_grid()); });
  }
  return agreed_.adds_quanta && agreed_.grounds == blind_grounds_;
}

/// A member whose device failed in a blind sum does not look for the range with those that have all
/// of it. True once the call is over for that.
bool ReducedCall::ends_for_failure() {
  if (!has_blind_results_ || trace::now_ns() < looks_for_failure_at_ns_) return false;
  looks_for_failure_at_ns_ = trace::now_ns() + failure_pause_ns;
  JointMemory& memory = JointMemories::of(job_, team_).coded_sums;
  if (!memory.has_lost_member()) return false;
  memory.tell_failure();
  movement_->runner().withdraw();
  note(job_.device_code);
  end_without_blocks();
  return true;
}

void ReducedCall::end_without_blocks() {
  joint_.reset();
  movement_.reset();
  copy_.reset();
  end();
}

void ReducedCall::end_jointly() {
  note(joint_->code());
  const bool were_quanta = joint_->were_quanta();
  const bool is_relative = spec_.bound == Bound::rel;
  if (code_ == MPI_SUCCESS) count_jointly();
  if (agreed_.is_blind && is_relative) range_.set(joint_->range());
  joint_.reset();
  if (!agreed_.is_blind || code_ != MPI_SUCCESS) return end_without_blocks();
  if (!is_relative) {
    blind_sums().ended(like(), were_quanta);
    if (were_quanta) return end_without_blocks();
  }
  has_blind_results_ = true;
  is_joint_ = false;
  blind_grounds_ = agreed_.grounds;
  looks_for_failure_at_ns_ = trace::now_ns() + failure_pause_ns;
  begin_measuring();
}

}  // namespace mpress::engine
