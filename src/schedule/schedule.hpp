// Schedules: who sends which block to whom in which round. Integers alone: nothing here knows MPI,
// links, buffers, elements or how long anything takes.
//
// A schedule is computed by each rank for itself, from what all ranks know: the collective, the
// number of ranks, the root, who shares a host. A block is what one origin encodes once: it is
// forwarded as it is, and decoded once at each destination. So a schedule names blocks, and never
// their bytes.
//
// Every schedule keeps these rules:
// 1. What a rank sends to a peer in a round, that peer receives in the same round, with the blocks
//    in the same order. There is at most one such transfer a round: from one rank to another.
// 2. What a rank sends in a round is its own, or came in an earlier round.
// 3. No block comes twice to a rank, none to its origin, and what a rank does not want it forwards.
// 4. All ranks have the same number of rounds; in a round a rank may have nothing to do.
//
// So a runner may go strictly round by round, or let transfers of w rounds be under way, if it
// starts those to one peer in their order. It always ends, whatever w is, with one slot a peer, for
// a slot is free again when its reader has taken the blocks: of all transfers that are not over,
// take one of the earliest round. Both of its ends have finished all earlier rounds, so its blocks
// are there (rule 2), the slot is free or holds this very transfer (rule 1), and its reader is
// ready to take it. Many schedules at once end, too, if none waits for a slot that another holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace mpress::schedule {

/// Collectives that move data.
enum class Op : std::uint8_t { bcast, scatter, gather, allgather, alltoall };
inline constexpr std::size_t op_count = 5;

/// 64 bits: an alltoall among 2^16 ranks has 2^32 blocks.
using Block = std::uint64_t;

/// What is to be moved; the same on all ranks.
struct Task {
  Op op;
  int size;          ///< ranks, 0 to size - 1; at least 1
  int root = 0;      ///< of bcast, scatter and gather
  int segments = 1;  ///< of bcast: the pieces that the root cuts its data into; at least 1

  /// Blocks are numbered from 0: of bcast by segment, of scatter by destination, of gather and
  /// allgather by origin, of alltoall by origin * size + destination.
  Block blocks() const;
  /// Who encodes it.
  int origin(Block block) const;
  /// Must it come to `rank`? What a rank has from itself never travels.
  bool is_wanted(Block block, int rank) const;
};

/// Blocks on their way to a rank, or from one.
struct Transfer {
  int peer;
  int round;            ///< from 0
  std::uint32_t first;  ///< of Schedule::blocks
  std::uint32_t count;  ///< at least 1
  /// Of a receive where partial sums travel (sums.hpp): what comes is combined with what this rank
  /// has of these blocks; else it takes its place.
  bool combines = false;
};

/// What one rank does. Transfers are in the order of their rounds.
struct Schedule {
  std::vector<Transfer> sends;
  std::vector<Transfer> receives;
  std::vector<Block> blocks;  ///< of all transfers: Transfer names a part
  int rounds = 0;             ///< of the whole collective: the same on all ranks

  /// In the order in which they travel.
  std::span<const Block> blocks_of(const Transfer& transfer) const {
    return std::span(blocks).subspan(transfer.first, transfer.count);
  }
};

/// The same backwards in time, what was sent being received: a scatter's is the gather's.
Schedule reversed(Schedule schedule);

/// Without the blocks that `is_there` refuses, because they are empty or travel otherwise; rounds
/// keep their numbers. Both ends of a transfer have to agree on each of its blocks. Where nothing
/// is forwarded (linear, pairwise and scattered algorithms, hierarchical_alltoall) it is enough
/// that a block's origin and its destination do.
Schedule restricted(Schedule schedule, const std::function<bool(Block)>& is_there);

}  // namespace mpress::schedule
