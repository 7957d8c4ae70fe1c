// Where the blocks of a collective call lie in this process: the schedule knows their numbers, the
// call its buffers.
#pragma once

#include <cstddef>
#include <functional>

#include "core/devices.hpp"
#include "engine/coll/operands.hpp"
#include "engine/coll/route.hpp"
#include "gpu/gpu.hpp"
#include "memory/buffer_pool.hpp"
#include "mpi/calls/calls.hpp"
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

/// Copies within this process, where both have the same signature. Returns an MPI error code.
int copy_part(Job& job, const Part& from, const Part& to);

/// Functions return error codes of MPI's, and raise nothing.
class BlockMap {
 public:
  /// Which of the receive buffer's blocks one of an all-to-all becomes, where that is not the one
  /// of its origin: a rank may receive several of one origin.
  using Place = std::function<int(schedule::Block)>;

  /// `segments`: of a broadcast.
  BlockMap(Job& job, schedule::Op op, const Operands& operands, int rank, int ranks, int segments,
           Place place = {});

  /// Of blocks that `outgoing` and `incoming` find, and with none that is this rank's for itself.
  using Find = std::function<Part(schedule::Block)>;
  BlockMap(Job& job, const schedule::Task& task, Find outgoing, Find incoming);

  const schedule::Task& task() const { return task_; }

  /// Before any block is asked for: brings what cannot be cut where it lies to memory of its own.
  int open();

  /// Once a call, at any time after that: begins to copy what this rank has for itself. What others
  /// wait for had better be under way by then.
  void start_own_copy();
  /// After that. Never waits; has it ended?
  bool is_own_copied();

  Part outgoing(schedule::Block block) const;
  Part incoming(schedule::Block block) const;

  /// When all blocks have come, and the own copy has ended.
  int close(bool is_for_root_too = false);

 private:
  int open_segments();
  Part segment(schedule::Block block) const;

  Job& job_;
  const Operands* const operands_ = nullptr;  ///< null: these find the blocks
  const Find find_outgoing_;
  const Find find_incoming_;
  const int rank_ = 0;
  const Place place_;
  schedule::Task task_;
  Part whole_;             ///< of a broadcast, the program's
  Part cut_;               ///< the same, without gaps
  memory::Buffer packed_;  ///< where that lies if the program's has gaps
  QueueLease own_queue_;   ///< while a device copies what is the rank's own
  gpu::Event own_copy_ = 0;
  int own_code_ = MPI_SUCCESS;
};

}  // namespace mpress::engine
