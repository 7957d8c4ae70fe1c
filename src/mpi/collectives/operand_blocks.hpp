// The blocks of a collective call in the buffers that its arguments name.
#pragma once

#include "coll/blocks/block_list.hpp"
#include "mpi/collectives/operands.hpp"

namespace mpress::engine {

/// Block `i` of a buffer's; empty where MPI does not know the type, which counts only where there
/// are items.
BlockData data_of(const Operand& operand, const Blocks& blocks, int i);

/// The blocks that a call's operands name: those that this rank sends, and those that it receives.
/// `operands` outlives them.
BlockList sent_blocks(const Operands& operands);
BlockList received_blocks(const Operands& operands);

}  // namespace mpress::engine
