#include "engine/coll/joint/joint_reduction.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/staging.hpp"
#include "engine/coll/even_piece.hpp"
#include "gpu/joint.hpp"
#include "mpi/job/job.hpp"
#include "mpi/objects/type_info.hpp"

namespace mpress::engine {
namespace {

namespace joint = gpu::joint;
static_assert(policy::linked.most_in_lines <= joint::most_in_lines);

std::size_t bytes_of(const Reduction& reduction) {
  return reduction.count * element_size(reduction.type);
}

/// Who wants a part alone, or alone wants all, gets no less in two shots than in one.
bool takes_two_shots(const Collective& call, const Reduction& reduction, const Context& context) {
  return call.family == Family::allreduce &&
         policy::joint_shots(reach_of(context), bytes_of(reduction), context.size()) ==
             policy::Shots::two;
}

/// Even ones, but for the last: in lines each takes the less the shorter it is.
std::vector<std::uint64_t> even_parts(const Reduction& reduction, int members) {
  constexpr std::uint64_t grain = 4;
  const auto n = static_cast<std::uint64_t>(members);
  const std::uint64_t part = even_piece(reduction.count, n, grain);
  std::vector<std::uint64_t> begins{0};
  while (begins.size() <= n) begins.push_back(std::min(reduction.count, begins.back() + part));
  return begins;
}

std::vector<std::uint64_t> parts_of(const Collective& call, const Operands& operands,
                                    const Reduction& reduction, const Context& context) {
  if (takes_two_shots(call, reduction, context)) {
    std::vector<std::uint64_t> parts = even_parts(reduction, context.size());
    const std::size_t longest = parts[1] * element_size(reduction.type);
    if (policy::travels_in_lines(reach_of(context), longest)) return parts;
  } else if (call.family != Family::reduce_scatter) {
    return {0, reduction.count};
  }
  const std::vector<std::int64_t> begins = pieces_of(call, operands, reduction, context, true);
  return {begins.begin(), begins.end()};
}

/// Bytes of the longest part.
std::size_t longest_part(const std::vector<std::uint64_t>& begins, std::size_t width) {
  std::uint64_t longest = 0;
  for (std::size_t i = 1; i < begins.size(); ++i) {
    longest = std::max(longest, begins[i] - begins[i - 1]);
  }
  return longest * width;
}

/// What is short as a whole does by each link.
bool goes_in_lines(const policy::Reach& reach, const std::vector<std::uint64_t>& begins,
                   std::size_t width, bool gathers) {
  return policy::travels_in_lines(reach, longest_part(begins, width)) ||
         (!gathers && begins.back() * width <= joint::most_brief);
}

/// So short that members read what the others have as a whole, in one shot or two? `begins`: of
/// parts, which count in a reduce-scatter alone.
bool is_short(const Collective& call, const Reduction& reduction,
              const std::vector<std::uint64_t>& begins, const Context& context) {
  const std::size_t bytes = bytes_of(reduction);
  const std::size_t part = call.family == Family::reduce_scatter
                               ? longest_part(begins, element_size(reduction.type))
                               : bytes;
  const auto shots =
      takes_two_shots(call, reduction, context) ? policy::Shots::two : policy::Shots::one;
  const std::size_t others = static_cast<std::size_t>(context.size()) - 1;
  return policy::may_combine_jointly(reach_of(context), shots, bytes, part * others);
}

/// Does it go row by row?
bool goes_by_rows(const Collective& call, const Operands& operands, const Reduction& reduction,
                  const Context& context, bool is_short) {
  const bool is_long = !is_short || bytes_of(reduction) >= reach_of(context).least_in_rows;
  return is_long && JointSum::is_apt(context, reduction.type,
                                     pieces_of(call, operands, reduction, context, true));
}

/// Not more for each size that comes.
JointMemory::Size memory_for(unsigned members, std::size_t bytes, bool is_brief,
                             bool has_long_lines) {
  constexpr std::size_t least_long = 1 << 20;
  const std::size_t room = is_brief ? 0 : std::max(least_long, std::bit_ceil(bytes));
  return {joint::memory_bytes(members, room, has_long_lines),
          joint::cleared_bytes(members, room, has_long_lines)};
}

}  // namespace

bool JointReduction::is_apt(const Collective& call, const Operands& operands, Context& context) {
  const auto ranks = static_cast<std::size_t>(context.size());
  if (ranks < 2 || ranks > joint::most_members) return false;
  if (context.hosts().count() > 1 || !context.agreements().can_gather(words)) return false;
  const std::optional<Reduction> reduction = reduction_of(operands);
  if (!reduction) return false;
  std::vector<std::uint64_t> begins;
  if (call.family == Family::reduce_scatter) {
    begins = parts_of(call, operands, *reduction, context);
  }
  return is_short(call, *reduction, begins, context) ||
         goes_by_rows(call, operands, *reduction, context, false);
}

JointReduction::JointReduction(Job& job, const Collective& call, const Operands& operands,
                               Context& context)
    : JointCall(job, call, context),
      operands_(operands),
      memory_(JointMemories::of(job, context).combined),
      reduction_(*reduction_of(operands)),
      gathers_(takes_two_shots(call, reduction_, context)),
      begins_(parts_of(call, operands, reduction_, context)),
      in_lines_(goes_in_lines(reach_of(context), begins_, width(), gathers_)),
      kernel_(job, memory_) {
  const bool goes_at_once = is_short(call, reduction_, begins_, context);
  if (!goes_by_rows(call, operands, reduction_, context, goes_at_once)) return;
  pieces_ = pieces_of(call, operands, reduction_, context, true);
  sum_.emplace(job, context, JointMemories::of(job, context).raw_sums, reduction_.type, pieces_,
               JointSum::goal_of(call.family, context.size(), operands.root), reduction_.how);
}

bool JointReduction::combines(int member) const {
  const auto i = static_cast<std::size_t>(member);
  if (has_parts()) return begins_[i + 1] > begins_[i];
  return call_.family != Family::reduce || member == operands_.root;
}

/// What a member reads of what another brings, or has combined.
std::size_t JointReduction::bytes_read(int by, int from) const {
  const auto part = [&](int member) {
    const auto i = static_cast<std::size_t>(member);
    return (begins_[i + 1] - begins_[i]) * width();
  };
  if (gathers_) return part(by) + part(from);
  if (!combines(by)) return 0;
  return has_parts() ? part(by) : bytes();
}

JointReduction::Told JointReduction::offer() {
  // Each asks for memory, so that the others find it there when they connect.
  if (!is_there()) return {};
  if (sum_) {
    return sum_->offer(device_, static_cast<const std::byte*>(reduction_.input), results_);
  }
  const bool is_read = memory_.connect(device_);
  const auto members = static_cast<unsigned>(context_.size());
  if (!memory_.provide(device_, memory_for(members, bytes(), is_brief(), has_long_lines())) ||
      !is_read)
    return {};
  const Ability ability = memory_.is_open() ? Ability::has : Ability::makes;
  const JointMemory::Routes routes = memory_.routes();
  return {static_cast<std::uint64_t>(ability) | kernel_.offer(), joint_device_word(job_, device_),
          routes[0], routes[1], 0};
}

bool JointReduction::gets_results() const {
  if (call_.family == Family::reduce) return context_.rank() == operands_.root;
  return call_.family == Family::allreduce || combines(context_.rank());
}

/// Finds where the data lies.
bool JointReduction::is_there() {
  const auto type = mpi::type_info(reduction_.mpi_type());
  if (!type || memory_.is_given_up()) return false;
  const auto lies_on = [&](const void* data, int device) {
    return device != gpu::host && reinterpret_cast<std::uintptr_t>(data) % width() == 0 &&
           device_of(job_, data, *type) == device;
  };
  device_ = device_of(job_, reduction_.input, *type);
  if (!lies_on(reduction_.input, device_)) return false;
  if (!kernel_.may_run_on(device_)) return false;
  if (gets_results()) {
    results_ = static_cast<std::byte*>(const_cast<void*>(operands_.receive.buffer));
    if (!lies_on(results_, device_)) return false;
    // Of MPI_Reduce_scatter in place they lie where others' parts were, which blocks copy in turn.
    if (reduction_.is_in_place && call_.family == Family::reduce_scatter) return false;
  }
  return true;
}

JointAnswer JointReduction::accept(std::span<const std::uint64_t> told) {
  if (sum_) return sum_->accept_told(told, {});
  const JointAnswer answer = memory_.answer(told, words);
  if (answer != JointAnswer::accepted) return answer;
  kernel_.begin(device_, told, words, giving());
  return answer;
}

bool JointReduction::is_brief() const {
  return in_lines_ && joint::is_brief(longest_part(begins_, width()), gathers_);
}

bool JointReduction::has_long_lines() const { return !memory_.is_on_host(); }

gpu::Event JointReduction::give(gpu::Queue& queue, std::uint32_t number, bool again) const {
  std::uint32_t combiners = 0;
  for (int member = 0; member < context_.size() && !has_parts(); ++member) {
    combiners |= combines(member) ? 1u << member : 0;
  }
  const gpu::Joint joint{memory_.memory(),
                         static_cast<unsigned>(context_.rank()),
                         number,
                         begins_,
                         combiners,
                         gathers_,
                         in_lines_,
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
  if (!kernel_.advance(giving(), code_)) return false;
  const int me = context_.rank();
  count(
      memory_.way(), [&](int member) { return bytes_read(member, me); },
      [&](int member) { return bytes_read(me, member); });
  return true;
}

void JointReduction::end_sum() {
  code_ = sum_->code();
  count(
      sum_->way(), [&](int member) { return sum_->raw_bytes_to(member); },
      [&](int member) { return sum_->raw_bytes_from(member); });
  sum_.reset();
}

}  // namespace mpress::engine
