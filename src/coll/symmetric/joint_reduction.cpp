#include "coll/symmetric/joint_reduction.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/plain_layout.hpp"
#include "core/staging.hpp"
#include "gpu/collective_queue.hpp"
#include "gpu/joint.hpp"
#include "message/messaging.hpp"

namespace mpress::engine {
namespace {

namespace joint = gpu::joint;

/// Not more for each size that comes.
JointMemory::Size memory_for(unsigned members, std::size_t bytes, bool is_brief,
                             bool has_long_lines) {
  constexpr std::size_t least_long = 1 << 20;
  const std::size_t room = is_brief ? 0 : std::max(least_long, std::bit_ceil(bytes));
  return {joint::memory_bytes(members, room, has_long_lines),
          joint::cleared_bytes(members, room, has_long_lines)};
}

}  // namespace

JointReduction::JointReduction(const CallHere& here)
    : JointCall(here.messaging, here.agreed.call, here.team),
      root_(here.agreed.root),
      program_results_(here.results),
      memory_(JointMemories::of(messaging_, team_).combined),
      reduction_(*here.reduction),
      parts_(here.agreed),
      kernel_(messaging_, memory_) {
  if (parts_.rows.empty()) return;
  sum_.emplace(messaging_, team_, JointMemories::of(messaging_, team_).raw_sums, reduction_.type,
               parts_.rows, JointSum::goal_of(call_.family, team_.size(), root_), reduction_.how);
}

bool JointReduction::combines(int member) const {
  const auto i = static_cast<std::size_t>(member);
  if (has_parts()) return parts_.begins[i + 1] > parts_.begins[i];
  return call_.family != Family::reduce || member == root_;
}

/// What a member reads of what another brings, or has combined.
std::size_t JointReduction::bytes_read(int by, int from) const {
  const auto part = [&](int member) {
    const auto i = static_cast<std::size_t>(member);
    return (parts_.begins[i + 1] - parts_.begins[i]) * width();
  };
  if (parts_.gathers) return part(by) + part(from);
  if (!combines(by)) return 0;
  return has_parts() ? part(by) : bytes();
}

JointReduction::Offer JointReduction::offer() {
  // Each asks for memory, so that the others find it there when they connect.
  if (!is_there()) return {};
  if (sum_) {
    return sum_->offer(device_, static_cast<const std::byte*>(reduction_.input), results_);
  }
  const bool is_read = memory_.connect(device_);
  const auto members = static_cast<unsigned>(team_.size());
  if (!memory_.provide(device_, memory_for(members, bytes(), is_brief(), has_long_lines())) ||
      !is_read)
    return {};
  const Ability ability = memory_.is_open() ? Ability::has : Ability::makes;
  const JointMemory::Routes routes = memory_.routes();
  return {static_cast<std::uint64_t>(ability) | kernel_.offer(),
          joint_device_word(messaging_, device_), routes[0], routes[1], 0};
}

bool JointReduction::gets_results() const {
  if (call_.family == Family::reduce) return team_.rank() == root_;
  return call_.family == Family::allreduce || combines(team_.rank());
}

/// Finds where the data lies.
bool JointReduction::is_there() {
  if (memory_.is_given_up()) return false;
  const Layout& layout = *plain_layout(reduction_.type);
  const auto lies_on = [&](const void* data, int device) {
    return device != gpu::host && reinterpret_cast<std::uintptr_t>(data) % width() == 0 &&
           device_of(messaging_, data, layout) == device;
  };
  device_ = device_of(messaging_, reduction_.input, layout);
  if (!lies_on(reduction_.input, device_)) return false;
  if (!kernel_.may_run_on(device_)) return false;
  if (gets_results()) {
    results_ = static_cast<std::byte*>(program_results_);
    if (!lies_on(results_, device_)) return false;
    // Of MPI_Reduce_scatter in place they lie where others' parts were, which blocks copy in turn.
    if (reduction_.is_in_place && call_.family == Family::reduce_scatter) return false;
  }
  return true;
}

Answer JointReduction::accept(std::span<const std::uint64_t> told) {
  if (sum_) return sum_->accept(told, {});
  const Answer answer = memory_.answer(told, words);
  if (answer != Answer::accepted) return answer;
  kernel_.begin(device_, told, words, giving());
  return answer;
}

bool JointReduction::is_brief() const {
  return parts_.in_lines && joint::is_brief(longest_of(parts_.begins) * width(), parts_.gathers);
}

bool JointReduction::has_long_lines() const { return !memory_.is_on_host(); }

gpu::Event JointReduction::give(gpu::CollectiveQueue& queue, std::uint32_t number,
                                bool again) const {
  std::uint32_t combiners = 0;
  for (int member = 0; member < team_.size() && !has_parts(); ++member) {
    combiners |= combines(member) ? 1u << member : 0;
  }
  const gpu::Joint joint{memory_.memory(),
                         static_cast<unsigned>(team_.rank()),
                         number,
                         parts_.begins,
                         combiners,
                         parts_.gathers,
                         parts_.in_lines,
                         has_long_lines(),
                         reduction_.input,
                         results_,
                         again,
                         memory_.undone(),
                         kernel_.is_endless()};
  return queue.combine_jointly(reduction_.how, reduction_.type, joint);
}

bool JointReduction::advance() {
  if (sum_) {
    if (!sum_->advance()) return false;
    end_sum();
  }
  if (!kernel_.is_under_way()) return true;
  if (!kernel_.advance(giving(), status_)) return false;
  const int me = team_.rank();
  count(
      memory_.way(), [&](int member) { return bytes_read(member, me); },
      [&](int member) { return bytes_read(me, member); });
  return true;
}

void JointReduction::end_sum() {
  status_ = sum_->status();
  count(
      sum_->way(), [&](int member) { return sum_->raw_bytes_to(member); },
      [&](int member) { return sum_->raw_bytes_from(member); });
  sum_.reset();
}

}  // namespace mpress::engine
