#include "engine/coll/reduce/reduction.hpp"

#include <algorithm>

#include "engine/coll/blocks/blocks.hpp"
#include "mpi/objects/type_info.hpp"

namespace mpress::engine {
namespace {

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
  return Reduction{{*how, *type->element, items * item, item}, input.buffer, is_in_place};
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
