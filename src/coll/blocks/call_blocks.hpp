// The blocks of a call that moves data, in the buffers of this member.
#pragma once

#include <cstddef>
#include <memory>

#include "coll/blocks/block_list.hpp"
#include "coll/blocks/copy_block.hpp"
#include "coll/call.hpp"
#include "core/devices.hpp"
#include "core/status.hpp"
#include "gpu/gpu.hpp"
#include "memory/buffer_pool.hpp"

namespace mpress::engine {

struct Messaging;

/// The collective that a call makes, as schedules know it; of a reduction the one by which results
/// travel.
schedule::Op schedule_op(const Collective& call);

/// Raises nothing.
class CallBlocks final : public BlockMap {
 public:
  /// `sent`, `received`: of the call's buffers, as its arguments name them: of a scatter's root a
  /// block for each member; of a broadcast one, which the root sends and others receive; of an
  /// all-gather in place nothing is sent.
  CallBlocks(Messaging& messaging, const schedule::Task& task, int rank, const BlockList& sent,
             const BlockList& received);

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

  Messaging& messaging_;
  const int rank_;
  const BlockList sent_, received_;
  BlockData whole_;        ///< of a broadcast, the program's
  BlockData cut_;          ///< the same, without gaps
  memory::Buffer packed_;  ///< where that lies if the program's has gaps
  QueueLease own_queue_;   ///< while a device copies what is the rank's own
  gpu::Event own_copy_ = 0;
  Status own_status_;
};

}  // namespace mpress::engine
