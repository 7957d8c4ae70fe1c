#include "engine/coll/reduce/reduction.hpp"

#include <algorithm>

#include "engine/coll/blocks/blocks.hpp"
#include "engine/coll/even_piece.hpp"
#include "engine/coll/route.hpp"
#include "gpu/gpu.hpp"
#include "mpi/job/context.hpp"
#include "mpi/objects/type_info.hpp"

namespace mpress::engine {
namespace {

/// Pieces begin at multiples of so many bytes: whole units of szp, in memory that kernels read
/// well.
constexpr std::uint64_t grain_bytes = 16384;

std::optional<codec::Combine> combination_of(MPI_Op op) {
  if (op == MPI_SUM) return codec::Combine::sum;
  if (op == MPI_MIN) return codec::Combine::min;
  if (op == MPI_MAX) return codec::Combine::max;
  if (op == MPI_PROD) return codec::Combine::prod;
  return std::nullopt;
}

}  // namespace

std::optional<Reduction> reduction_of(const Operands& operands) {
  const std::optional<codec::Combine> how = combination_of(operands.op);
  const bool is_in_place = operands.send.reads.number() == 0;
  const Operand& input = is_in_place ? operands.receive : operands.send;
  if (!how || input.reads.number() == 0 || input.reads.count(0) < 0) return std::nullopt;
  const auto type = mpi::glance_at_type(input.reads.type(0));
  if (!type || !type->is_predefined || !type->element || !type->contiguous) return std::nullopt;
  const std::size_t item = type->size / element_size(*type->element);
  if (item > 1 && *how != codec::Combine::sum) return std::nullopt;
  const auto items = static_cast<std::uint64_t>(input.reads.count(0)) *
                     static_cast<std::uint64_t>(input.reads.number());
  return Reduction{*how, *type->element, items * item, item, input.buffer, is_in_place};
}

std::vector<std::int64_t> pieces_of(const Collective& call, const Operands& operands,
                                    const Reduction& reduction, const Context& context,
                                    bool overlaps) {
  const auto n = static_cast<std::uint64_t>(context.size());
  std::vector<std::int64_t> begins(n + 1);
  const std::uint64_t grain = grain_bytes / element_size(reduction.type);
  const bool is_rooted = overlaps && call.family == Family::reduce && reduction.count > n * grain;
  const bool spares_root = is_rooted && n > 2;
  const bool spares_other = is_rooted && n == 2 && context.between_devices() == link::Kind::host;
  const std::uint64_t owners = spares_root || spares_other ? n - 1 : n;
  const std::uint64_t even = even_piece(reduction.count, owners, grain);
  for (std::size_t i = 0; i < n; ++i) {
    const bool is_root = static_cast<int>(i) == operands.root;
    const bool is_spared = is_root ? spares_root : spares_other;
    std::uint64_t piece = is_spared ? 0 : even;
    if (call.op == trace::Op::reduce_scatter_block) piece = reduction.count / n;
    if (call.op == trace::Op::reduce_scatter) {
      piece =
          static_cast<std::uint64_t>(operands.result_counts[static_cast<int>(i)]) * reduction.item;
    }
    const std::uint64_t end = static_cast<std::uint64_t>(begins[i]) + piece;
    begins[i + 1] = static_cast<std::int64_t>(std::min(reduction.count, end));
  }
  return begins;
}

Spec spec_for(const Reduction& reduction, const Spec& agreed, bool is_reproducible) {
  const bool bears_loss =
      reduction.how != codec::Combine::prod &&
      (!is_reproducible || (agreed.codec == Codec::szp && reduction.how == codec::Combine::sum));
  return agreed.lossy() && !bears_loss ? Spec{.codec = Codec::mpc} : agreed;
}

Part longest_contribution(const Reduction& reduction, const void* input,
                          std::span<const std::int64_t> begins, int rank) {
  std::int64_t longest = 0;
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
    if (static_cast<int>(i) != rank) longest = std::max(longest, begins[i + 1] - begins[i]);
  }
  return {const_cast<void*>(input), longest, reduction.mpi_type(),
          static_cast<std::size_t>(longest) * element_size(reduction.type)};
}

}  // namespace mpress::engine
