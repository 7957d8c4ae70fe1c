// The blocks of a collective call in the buffers that its arguments name.
#pragma once

#include <cstddef>

#include "coll/blocks/block_list.hpp"
#include "mpi/calls/calls.hpp"
#include "mpi/collectives/operands.hpp"
#include "mpi/collectives/route.hpp"
#include "schedule/schedule.hpp"

namespace mpress::engine {

class Job;

/// The collective that a call makes, as schedules know it; of a reduction the one by which results
/// travel.
schedule::Op schedule_op(const Collective& call);

/// Data of a block in this process, as MPI describes it; without bytes where there is none.
struct Part {
  void* data = nullptr;
  MPI_Count count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  std::size_t bytes = 0;
};

/// Block `i` of a buffer's. Its type counts only where it has items.
Part part_of(const Operand& operand, const Blocks& blocks, int i);

/// The same as data; empty where MPI does not know the type.
BlockData data_of(const Operand& operand, const Blocks& blocks, int i);
BlockData data_of(const Part& part);

/// Copies within this process, where both have the same signature. Returns an MPI error code.
int copy_part(Job& job, const Part& from, const Part& to);

/// The blocks that a call's operands name: those that this rank sends, and those that it receives.
/// `operands` outlives them.
BlockList sent_blocks(const Operands& operands);
BlockList received_blocks(const Operands& operands);

}  // namespace mpress::engine
