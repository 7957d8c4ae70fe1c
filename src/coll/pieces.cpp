#include "coll/pieces.hpp"

#include <algorithm>

#include "coll/even_piece.hpp"
#include "gpu/joint_sum.hpp"

namespace mpress::engine {
namespace {

/// Pieces begin at multiples of so many bytes: whole units of szp, in memory that kernels read
/// well.
constexpr std::uint64_t grain_bytes = 16384;

}  // namespace

std::vector<std::int64_t> pieces_of(const AgreedCall& call, bool overlaps) {
  const ReductionShape& reduction = *call.reduction;
  const auto n = static_cast<std::uint64_t>(call.team.ranks);
  std::vector<std::int64_t> begins(n + 1);
  const std::uint64_t grain = grain_bytes / reduction.width();
  const bool is_rooted =
      overlaps && call.call.family == Family::reduce && reduction.count > n * grain;
  const bool spares_root = is_rooted && n > 2;
  const bool spares_other = is_rooted && n == 2 && call.team.between_devices == link::Kind::host;
  const std::uint64_t owners = spares_root || spares_other ? n - 1 : n;
  const std::uint64_t even = even_piece(reduction.count, owners, grain);
  for (std::size_t i = 0; i < n; ++i) {
    const bool is_root = static_cast<int>(i) == call.root;
    const bool is_spared = is_root ? spares_root : spares_other;
    std::uint64_t piece = is_spared ? 0 : even;
    if (call.call.op == trace::Op::reduce_scatter_block) piece = reduction.count / n;
    if (call.call.op == trace::Op::reduce_scatter) {
      piece = static_cast<std::uint64_t>(call.result_counts[static_cast<int>(i)]) * reduction.item;
    }
    const std::uint64_t end = static_cast<std::uint64_t>(begins[i]) + piece;
    begins[i + 1] = static_cast<std::int64_t>(std::min(reduction.count, end));
  }
  return begins;
}

bool fit_in_rows(const TeamFacts& team, ElementType type, std::span<const std::int64_t> begins) {
  namespace joint = gpu::joint_sum;
  if (team.ranks < 2 || static_cast<unsigned>(team.ranks) > joint::most_members) return false;
  const std::size_t longest = longest_of(begins);
  return team.hosts == 1 && longest > 0 &&
         joint::units_of(longest, element_size(type)) <= joint::most_units_in_all;
}

}  // namespace mpress::engine
