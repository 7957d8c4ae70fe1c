#include "mpi/collectives/reduction.hpp"

#include "mpi/objects/type_info.hpp"

namespace mpress::engine {

std::optional<codec::Combine> combination_of(MPI_Op op) {
  if (op == MPI_SUM) return codec::Combine::sum;
  if (op == MPI_MIN) return codec::Combine::min;
  if (op == MPI_MAX) return codec::Combine::max;
  if (op == MPI_PROD) return codec::Combine::prod;
  return std::nullopt;
}

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

}  // namespace mpress::engine
