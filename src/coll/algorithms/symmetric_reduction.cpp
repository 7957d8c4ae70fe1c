#include "coll/algorithms/symmetric_reduction.hpp"

#include <algorithm>

#include "coll/algorithms/conditions.hpp"
#include "coll/even_piece.hpp"
#include "coll/pieces.hpp"
#include "coll/symmetric/joint_reduction.hpp"
#include "gpu/joint.hpp"

namespace mpress::engine {
namespace {

namespace joint = gpu::joint;
static_assert(policy::linked.most_in_lines <= joint::most_in_lines);

/// A member that wants a part alone, or alone wants all, reads no less in two shots than in one.
bool takes_two_shots(const AgreedCall& call) {
  return call.call.family == Family::allreduce &&
         policy::joint_shots(reach_of(call.team), call.reduction->bytes(), call.team.ranks) ==
             policy::Shots::two;
}

/// Even parts, but for the last: as LL packets, a shorter part takes less.
std::vector<std::uint64_t> even_parts(const AgreedCall& call) {
  constexpr std::uint64_t grain = 4;
  const auto n = static_cast<std::uint64_t>(call.team.ranks);
  const std::uint64_t all = call.reduction->count;
  const std::uint64_t part = even_piece(all, n, grain);
  std::vector<std::uint64_t> begins{0};
  while (begins.size() <= n) begins.push_back(std::min(all, begins.back() + part));
  return begins;
}

std::vector<std::uint64_t> parts_of(const AgreedCall& call) {
  if (takes_two_shots(call)) {
    std::vector<std::uint64_t> parts = even_parts(call);
    const std::size_t longest = parts[1] * call.reduction->width();
    if (policy::travels_in_lines(reach_of(call.team), longest)) return parts;
  } else if (call.call.family != Family::reduce_scatter) {
    return {0, call.reduction->count};
  }
  const std::vector<std::int64_t> begins = pieces_of(call, true);
  return {begins.begin(), begins.end()};
}

/// So short that members read what the others have as a whole, in one shot or two? `begins`: of
/// parts, which count in a reduce-scatter alone.
bool is_short(const AgreedCall& call, const std::vector<std::uint64_t>& begins) {
  const std::size_t bytes = call.reduction->bytes();
  const std::size_t part = call.call.family == Family::reduce_scatter
                               ? longest_of(begins) * call.reduction->width()
                               : bytes;
  const auto shots = takes_two_shots(call) ? policy::Shots::two : policy::Shots::one;
  const std::size_t others = static_cast<std::size_t>(call.team.ranks) - 1;
  return policy::may_combine_jointly(reach_of(call.team), shots, bytes, part * others);
}

/// Parts that go row by row; empty where it goes as a whole, or not at all.
std::vector<std::int64_t> rows_of(const AgreedCall& call, bool is_short) {
  if (is_short && call.reduction->bytes() < reach_of(call.team).least_in_rows) return {};
  std::vector<std::int64_t> pieces = pieces_of(call, true);
  if (!fit_in_rows(call.team, call.reduction->type, pieces)) pieces.clear();
  return pieces;
}

WhyNot why_not(const AgreedCall& call) {
  if (!call.call.reduces) return other_kind;
  if (const WhyNot why = why_no_kernels(call)) return why;
  if (!call.reduction) return not_combined;
  if (const WhyNot why = why_no_offer(call, joint::most_members)) return why;
  std::vector<std::uint64_t> begins;
  if (call.call.family == Family::reduce_scatter) begins = parts_of(call);
  if (is_short(call, begins) || !rows_of(call, false).empty()) return nullptr;
  return "its parts are too long";
}

}  // namespace

/// Data that is short as a whole travels as LL packets by each link.
SymmetricParts::SymmetricParts(const AgreedCall& call)
    : gathers(takes_two_shots(call)),
      begins(parts_of(call)),
      in_lines(policy::travels_in_lines(reach_of(call.team),
                                        longest_of(begins) * call.reduction->width()) ||
               (!gathers && call.reduction->bytes() <= joint::most_brief)),
      rows(rows_of(call, is_short(call, begins))) {}

const Algorithm symmetric_reduction{.name = "symmetric reduction",
                                    .why_not = why_not,
                                    .offer = offer<JointReduction>,
                                    .has_kernels = true};

}  // namespace mpress::engine
