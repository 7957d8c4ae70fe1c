// Kernels of several members that work together on data of their devices: each member gives one to
// a queue of its own, and they wait for each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/combine.hpp"
#include "codec/element.hpp"
#include "codec/report.hpp"
#include "gpu/queue.hpp"

namespace mpress::gpu {

/// A member's share of what several combine together, each by a queue of its own, in one process or
/// in several: CollectiveQueue::combine_jointly(). All of them are given the same but for what says
/// otherwise.
struct Joint {
  /// Joint memory of each member (gpu/joint.hpp), up to joint::most_members, as kernels of this
  /// queue's device reach it; its own at `member`. cleared_bytes() were 0 before its first use.
  std::span<std::byte* const> memory;
  unsigned member;  ///< differs
  /// Not 0, and another than at all uses of that memory before. Nothing reads it any more, on any
  /// device, that was given with another number.
  std::uint32_t call;
  /// In elements: part i is from [i] to [i + 1]. One part; or one for each member, which combines
  /// it.
  std::span<const std::uint64_t> begins;
  /// Of one part: who combines it, a bit for each member; one of these or all.
  std::uint32_t combiners;
  /// Of several parts: all members get all of them.
  bool gathers;
  bool in_lines;        ///< it travels so: no part has more bytes than joint::most_in_lines
  bool has_long_lines;  ///< the memory has room for them; else what is in lines is brief
  const void* input;    ///< differs; all parts, one behind the other
  /// Differs. Where the part goes that this member combines, or, with `gathers`, all of them; null
  /// where it gets none. May be the input, but for several parts without `gathers`.
  void* out;
  /// Work of the same call that was left undone before goes on.
  bool again = false;
  /// Host memory that devices reach, pinned or from Gpu::map(): gets 1 where others did not come in
  /// time, and not all is done. Differs.
  std::uint32_t* undone;
  /// It waits for the others until its host writes to `undone`, which may not look whether to give
  /// it again. Differs.
  bool is_endless = false;
};

/// A member's share of what several bring each other, each by a queue of its own:
/// CollectiveQueue::move_jointly(). All of it differs but for `call`, `rooms`, how it travels, and
/// what the members' blocks have in common: what one sends is as long as what the other receives.
struct JointMove {
  /// What goes to a member, of memory of the queue's device.
  struct Outgoing {
    const void* from = nullptr;
    std::uint64_t bytes = 0;
  };
  /// Where what comes of a member goes, in memory of the queue's device that nothing is sent of.
  struct Incoming {
    void* to = nullptr;
    std::uint64_t bytes = 0;
  };

  /// Joint memory of each member (gpu/joint_move.hpp), as kernels of this queue's device reach it;
  /// its own at `member`. cleared_bytes() were 0 before its first use.
  std::span<std::byte* const> memory;
  std::span<const std::uint64_t> rooms;  ///< of a slot in each; no block is longer
  bool in_lines;   ///< they travel so: none has more bytes than joint_move::most_in_lines()
  bool has_lines;  ///< the memory has room for them
  /// What one sends is the same for all who get any, and lies in its memory; not in lines.
  bool is_shared;
  unsigned member;
  /// Not 0, and another than at all uses of that memory before, which are over on all devices.
  std::uint32_t call;
  /// By member. `member` itself: what is copied here; null `to`: nothing is.
  std::span<const Outgoing> sends;
  std::span<const Incoming> receives;
  /// Work of the same call that was left undone before goes on.
  bool again = false;
  std::uint32_t* undone;    ///< as Joint::undone
  bool is_endless = false;  ///< as Joint::is_endless
};

/// A member's share of a sum that several make together, each by a queue of its own:
/// CollectiveQueue::sum_jointly(). All of them are given the same but for what says otherwise.
struct JointSum {
  /// Joint memory of each member (gpu/joint_sum.hpp), as kernels of this queue's device reach it;
  /// its own at `member`. Layout::cleared_bytes() were 0 before its first use.
  std::span<std::byte* const> memory;
  std::span<const std::uint32_t> units;  ///< of each member's Layout
  bool is_on_host;                       ///< the same
  unsigned member;                       ///< differs
  /// The first of the numbers of its laps (joint_sum::laps_of()): not 0, and above those of the use
  /// of that memory before, which is over on the queues of all members.
  std::uint32_t call;
  /// Of each contribution. None: elements are combined as they are, in the order of the members.
  codec::Grid grid;
  codec::Combine how = codec::Combine::sum;  ///< without a grid
  /// In elements: part i, which member i adds up, is `counts[i]` from `begins[i]` on.
  std::span<const std::uint64_t> begins, counts;
  /// Who gets all parts, a bit for each member. None: each gets its own.
  std::uint32_t readers;
  /// The only member that brings anything, to all others, so that this is a broadcast: it has no
  /// part, and is no reader. Negative: all bring something.
  int source = -1;
  const void* input;  ///< differs; the whole vector; null of a member that brings nothing
  /// Differs: the whole vector of a reader's, or where a member's own part goes; null of a member
  /// that gets nothing. May be the input, but where each gets its own.
  void* out;
  /// Work of the same call that was left undone before goes on.
  bool again = false;
  /// Host memory that devices reach, pinned or from Gpu::map(). Differs.
  struct Tally {
    std::uint32_t undone;  ///< gets 1 where others did not come in time, and not all is done
    /// Of a grid with a reach: gets 1 where an element of any member's, or a sum, had no quantum.
    /// All who get all parts are told the same.
    std::uint32_t as_elements;
    std::uint64_t sent, received;  ///< bytes of rows, to all others and from them
    /// Where it is looked for: of what this member brings, as far as this work has read it.
    Extent extent;
  };
  Tally* tally;
  bool finds_range = false;  ///< of a sum with a grid
};

/// A queue as Queue::collectives() has it: order, threads and memory are the Queue's, which also
/// tells of events.
class CollectiveQueue {
 public:
  /// Combines what all members bring, in their order, with the bits of CodecQueue::combine():
  /// kernels that wait on the device for those of the other members, each for some milliseconds. So
  /// members give this once all are known to do so, on devices of their own. Where one came too
  /// late, `undone` says so, and the same is given `again`: until then the memory is as it was
  /// left; but for one that is endless. Inputs and results are on the queue's device, aligned as
  /// their type.
  virtual Event combine_jointly(codec::Combine how, ElementType type, const Joint& joint) = 0;

  /// Brings the other members what they get of this one, and writes what comes of them: as
  /// combine_jointly(), but that each member stores what it sends in the memory of who gets it.
  virtual Event move_jointly(const JointMove& move) = 0;

  /// Adds up what all members bring on one grid, with the bits of
  /// CodecQueue::combine_in_any_order(), or as it is, with those of combine(): as
  /// combine_jointly(), but that each member stores what it has in the memory of those who read it,
  /// and quanta travel in few bits. Inputs and results are on the queue's device, aligned as their
  /// type.
  virtual Event sum_jointly(ElementType type, const JointSum& sum) = 0;

 protected:
  ~CollectiveQueue() = default;
};

}  // namespace mpress::gpu
