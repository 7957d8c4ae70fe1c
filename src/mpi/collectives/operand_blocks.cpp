#include "mpi/collectives/operand_blocks.hpp"

#include <cstdint>
#include <utility>

#include "mpi/objects/type_info.hpp"

namespace mpress::engine {
namespace {

BlockData read_by(const void* operand, int i) {
  const auto& of = *static_cast<const Operand*>(operand);
  return data_of(of, of.reads, i);
}

BlockData written_by(const void* operand, int i) {
  const auto& of = *static_cast<const Operand*>(operand);
  return data_of(of, of.writes, i);
}

}  // namespace

BlockData data_of(const Operand& operand, const Blocks& blocks, int i) {
  if (i >= blocks.number()) return {};
  const Block block = blocks[i];
  if (block.count <= 0) return {};
  std::shared_ptr<const mpi::TypeInfo> type = mpi::type_info(block.type);
  if (!type) return {};
  const auto at =
      reinterpret_cast<std::uintptr_t>(operand.buffer) + static_cast<std::uintptr_t>(block.offset);
  const std::size_t bytes = type->size * static_cast<std::size_t>(block.count);
  return {reinterpret_cast<void*>(at), block.count, std::move(type), bytes};
}

/// A broadcast has one buffer, which its root reads, and nobody writes there.
BlockList sent_blocks(const Operands& operands) {
  const bool is_root = operands.send.reads.number() == 0 && operands.receive.writes.number() == 0;
  const Operand& from = is_root ? operands.receive : operands.send;
  return {from.reads.number(), &from, read_by};
}

BlockList received_blocks(const Operands& operands) {
  return {operands.receive.writes.number(), &operands.receive, written_by};
}

}  // namespace mpress::engine
