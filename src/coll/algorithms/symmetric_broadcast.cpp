#include "coll/algorithms/symmetric_broadcast.hpp"

#include <algorithm>

#include "coll/algorithms/conditions.hpp"
#include "coll/even_piece.hpp"
#include "coll/pieces.hpp"
#include "coll/symmetric/joint_broadcast.hpp"
#include "gpu/joint_sum.hpp"

namespace mpress::engine {
namespace {

WhyNot why_not(const AgreedCall& call) {
  if (call.call.family != Family::bcast) return other_kind;
  if (const WhyNot why = why_no_kernels(call)) return why;
  if (call.bytes == 0 || call.bytes % broadcast_word_bytes != 0) return "not a number of words";
  if (!symmetric_move.why_not(call)) return "short enough for a symmetric move";
  if (!reach_of(call.team).broadcasts_in_rows) return "copies through memory of the host";
  if (const WhyNot why = why_no_offer(call, gpu::joint_sum::most_members)) return why;
  const bool fits = fit_in_rows(call.team, broadcast_word, broadcast_parts(call));
  return fits ? nullptr : "too long";
}

}  // namespace

std::vector<std::int64_t> broadcast_parts(const AgreedCall& call) {
  const std::size_t words = call.bytes / broadcast_word_bytes;
  const auto owners = static_cast<std::size_t>(call.team.ranks - 1);
  const std::size_t even =
      even_piece(words, owners, gpu::joint_sum::unit_elements(broadcast_word_bytes));
  std::vector<std::int64_t> begins{0};
  std::size_t end = 0;
  for (int rank = 0; rank < call.team.ranks; ++rank) {
    if (rank != call.root) end = std::min(words, end + even);
    begins.push_back(static_cast<std::int64_t>(end));
  }
  return begins;
}

const Algorithm symmetric_broadcast{.name = "symmetric broadcast",
                                    .why_not = why_not,
                                    .offer = offer<JointBroadcast>,
                                    .has_kernels = true};

}  // namespace mpress::engine
