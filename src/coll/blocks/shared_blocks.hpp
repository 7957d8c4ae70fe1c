// The blocks of a call that several ranks get: each is encoded once, by its origin, and passed on
// as it came, so that all of them have the same bits.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "coll/blocks/block_map.hpp"
#include "coll/blocks/envelope.hpp"
#include "coll/call.hpp"
#include "coll/team.hpp"
#include "message/block_decode.hpp"
#include "message/messaging.hpp"
#include "pipeline/launch_batch.hpp"
#include "pipeline/received_block.hpp"
#include "schedule/schedule.hpp"

namespace mpress::engine {

class SharedBlocks {
 public:
  /// All of these outlive it. A call whose blocks have one reader each has none. `coding`: null, or
  /// how all blocks are encoded.
  SharedBlocks(Messaging& messaging, Envelopes& envelopes, const Collective& call,
               trace::Called called, const Team& team, const schedule::Schedule& schedule,
               const BlockMap& blocks, const Coding* coding);

  // Before the first round:

  /// This rank has a block of its own so, whole or under way. `is_decoded`: where it gets that
  /// block itself, it comes there otherwise.
  void provide(schedule::Block block, std::shared_ptr<OpaqueBlock> own, bool is_decoded);

  /// A block that this rank receives is kept so, and not decoded, as far as it comes encoded.
  void leave_in(schedule::Block block, std::shared_ptr<ReceivedBlock> opaque) {
    left_in_.emplace(block, std::move(opaque));
  }

  /// Where a block that this rank receives is to be kept.
  struct Keeping {
    std::shared_ptr<ReceivedBlock> opaque;  ///< null: nowhere
    bool alone = false;                     ///< it is not to be decoded
  };
  Keeping to_keep(schedule::Block block) const;

  /// Is a block that came, or comes, kept as it came, where those it is passed on to find it? Then
  /// that can begin, also where this rank could not decode it.
  bool is_kept(schedule::Block block) const;

  /// How a block leaves.
  struct Sending {
    /// To all of them; null: the runner sends messages to each,
    std::unique_ptr<Envelope> begun;
    std::optional<trace::Reason> raw_for = {};  ///< where set of the block as it is, and why;
    Status status = {};  ///< or, where that is an error, tells each that it does not come
  };

  /// Sends a block, which is there or kept, to ranks that get it in the same round; or tells how
  /// its runner is to do so. What has begun is the caller's to advance; `batch`: as SendCall says.
  Sending send(schedule::Block block, const BlockData& data, std::span<const int> readers,
               Driven driven, LaunchBatch& batch);

  /// What others get of this rank's own blocks with a loss it has so, too, where it gets them.
  bool has_own_by_decoder() const;
  /// Lets that proceed; see Runner.
  bool advance_own();
  Status own_status() const { return own_status_; }

  /// What this rank's own blocks have lost, as Outcome::bound has it; empty: none was encoded.
  const std::optional<double>& lost() const { return lost_; }

  /// Does a lossy broadcast's root get what the others get: the call asks for it, or the
  /// environment?
  static bool is_for_root_too(const Config& config, const Coding* coding);

 private:
  struct Shared {
    std::vector<int> readers;  ///< in all rounds
    int round = 0;             ///< in which the first of them get it
    bool is_at_once = true;    ///< all of them do
    std::size_t sends_left = 0;
    bool is_decided = false;                          ///< of an own block: how it goes
    bool is_decoded = false;                          ///< and that this rank has it as others do
    Status status = {};                               ///< why it cannot be sent
    std::shared_ptr<OpaqueBlock> own;                 ///< encoded, of an own block
    std::shared_ptr<ReceivedBlock> kept;              ///< of another
    trace::Reason reason = trace::Reason::forwarded;  ///< why it goes as it is
  };

  ReceivedBlock::FindStaging staging_for(std::span<const int> readers) const;
  std::vector<int> world_ranks(std::span<const int> readers) const;
  bool is_own(schedule::Block block) const;
  bool is_for_self_too(schedule::Block block) const;
  OpaqueBlock* lossy(schedule::Block block, const Shared& shared) const;
  Status decide(schedule::Block block, Shared& shared, const BlockData& data, bool at_once,
                Driven driven, LaunchBatch& batch);

  Messaging& messaging_;
  Envelopes& envelopes_;
  const Collective& call_;
  const trace::Called called_;
  const Team& team_;
  const BlockMap& blocks_;
  const Coding* const coding_;
  bool may_have_loss_ = false;
  std::unordered_map<schedule::Block, Shared> shared_;  ///< those that this rank sends
  std::unordered_map<schedule::Block, std::shared_ptr<ReceivedBlock>> left_in_;
  std::optional<BlockDecode> own_;               ///< under way
  std::unordered_set<schedule::Block> has_own_;  ///< whose decoding is over
  Status own_status_;
  std::optional<double> lost_;
};

}  // namespace mpress::engine
