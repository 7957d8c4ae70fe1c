// The blocks of a collective call in the buffers that its arguments name.
#pragma once

#include <cstddef>

#include "coll/blocks/block_map.hpp"
#include "core/devices.hpp"
#include "gpu/gpu.hpp"
#include "memory/buffer_pool.hpp"
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

/// Raises nothing.
class OperandBlocks final : public BlockMap {
 public:
  /// `operands` outlives it. `segments`: of a broadcast.
  OperandBlocks(Job& job, schedule::Op op, const Operands& operands, int rank, int ranks,
                int segments);

  /// Before any block is asked for: brings what cannot be cut where it lies to memory of its own.
  Status open();

  /// Once a call, at any time after that: begins to copy what this rank has for itself. What others
  /// wait for had better be under way by then.
  void start_own_copy();
  /// After that. Never waits; has it ended?
  bool is_own_copied();

  BlockData outgoing(schedule::Block block) const override;
  BlockData incoming(schedule::Block block) const override;

  /// When all blocks have come, and the own copy has ended.
  Status close(bool is_for_root_too = false);

 private:
  Status open_segments();
  BlockData segment(schedule::Block block) const;

  Job& job_;
  const Operands& operands_;
  const int rank_;
  Part whole_;                                ///< of a broadcast, the program's
  Part cut_;                                  ///< the same, without gaps
  std::shared_ptr<const Layout> cut_layout_;  ///< of that
  memory::Buffer packed_;                     ///< where that lies if the program's has gaps
  QueueLease own_queue_;                      ///< while a device copies what is the rank's own
  gpu::Event own_copy_ = 0;
  Status own_status_;
};

}  // namespace mpress::engine
