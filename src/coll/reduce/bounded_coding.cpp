#include "coll/reduce/bounded_coding.hpp"

#include <algorithm>
#include <cmath>

#include "codec/float_environment.hpp"
#include "codec/sum_grid.hpp"

namespace mpress::engine {
namespace {

/// Of the host's window, filled by the contributions of all members, for these to go in windows.
constexpr double least_of_window = 0.25;

/// Coding::share_in_windows. Some contributions may be next to nothing.
double share_in_windows(std::span<const ContributionSummary> summaries) {
  double longest = 0;
  double windows = 0;
  for (const ContributionSummary& one : summaries) {
    if (one.share == 0) return 0;
    longest = std::max(longest, one.share);
    windows += one.windows;
  }
  return windows > least_of_window * static_cast<double>(summaries.size()) ? longest : 0;
}

}  // namespace

BoundedCoding::BoundedCoding(std::span<const ContributionSummary> summaries,
                             const BoundedReduction& of)
    : coding{.spec = {.codec = Codec::none}, .is_decided = true} {
  if (of.spec.codec != Codec::none) coding.why_raw = trace::Reason::policy;  // until it is chosen
  compute([&] { agree(summaries, of); });
}

void BoundedCoding::agree(std::span<const ContributionSummary> summaries,
                          const BoundedReduction& of) {
  const auto all = [&](std::uint64_t flag) {
    return std::ranges::all_of(summaries,
                               [=](const ContributionSummary& one) { return one.has(flag); });
  };
  const auto any = [&](std::uint64_t flag) {
    return std::ranges::any_of(summaries,
                               [=](const ContributionSummary& one) { return one.has(flag); });
  };
  are_any_known = any(ContributionSummary::is_known);
  if (!any(ContributionSummary::pays) && !of.encodes_in_any_case) return;
  is_blind = !all(ContributionSummary::is_known);
  codec::Range range;
  std::uint64_t chunk_bytes = summaries.front().chunk_bytes;
  for (const ContributionSummary& one : summaries) {
    range.join({one.min, one.max, one.has(ContributionSummary::is_finite), false});
    chunk_bytes = std::min(chunk_bytes, one.chunk_bytes);
  }
  greatest = std::max(std::fabs(range.min), std::fabs(range.max));
  coding.chunk_bytes = chunk_bytes;
  coding.is_for_devices = all(ContributionSummary::is_on_device);
  coding.share_in_windows = share_in_windows(summaries);
  if (is_blind && of.spec.bound == Bound::rel) {
    // Those who know it wait for those who do not, and none of them encodes anything.
    grounds = summaries.front().expected;
    const bool are_alike = std::ranges::all_of(
        summaries, [&](const ContributionSummary& one) { return one.expected == grounds; });
    if (are_any_known || !are_alike) return;
  }
  choose(of.spec.bound == Bound::rel ? of.spec.value * range.width() : of.spec.value, of);
}

/// That of one member's elements, for a `bound` on the result.
std::optional<codec::Grid> BoundedCoding::grid_for(double bound, const BoundedReduction& of) {
  using namespace codec;
  if (!of.is_sum) return bound;
  const auto summand = [&](const Grounds& from) {
    grounds = from;
    return summand_grid(of.type, from.bound, of.members, from.most);
  };
  // Sums with and without the range go by one grid.
  if (of.spec.bound == Bound::abs) {
    return summand({bound, std::max(greatest, covered(of.type, bound, of.members))});
  }
  if (is_blind) return summand(grounds);
  const std::optional<codec::Grid> of_steps = summand(coarse({bound, greatest}));
  return of_steps && resolvable(of.type, of_steps->bound) ? of_steps : summand({bound, greatest});
}

void BoundedCoding::choose(double bound, const BoundedReduction& of) {
  using namespace codec;
  const std::optional<codec::Grid> part = grid_for(bound, of);
  if (!part || !(part->bound > 0) || !resolvable(of.type, part->bound)) {
    coding = {.spec = {.codec = Codec::mpc},
              .is_decided = true};  // nothing is lost, and so no bound is exceeded
    return;
  }
  coding.spec = of.spec;
  coding.spec.bound = Bound::abs;
  coding.spec.value = part->bound;
  coding.spec.slack = part->slack;
  coding.is_summed = adds_quanta = of.is_sum;
  const auto error = [&] { return bound_of_sum(of.type, *part, of.members, grounds.most); };
  loss = {true, of.is_sum ? error() : part->bound};
}

}  // namespace mpress::engine
