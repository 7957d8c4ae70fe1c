// A neighbourhood's call that moves data: its blocks under way.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "coll/blocks/runner.hpp"
#include "coll/blocks/served.hpp"
#include "coll/call_tag.hpp"
#include "coll/collective_operation.hpp"
#include "coll/neighbourhoods/exchange.hpp"
#include "coll/neighbourhoods/frames.hpp"
#include "coll/neighbourhoods/packed_rounds.hpp"
#include "coll/neighbourhoods/raw_blocks.hpp"
#include "pipeline/sum_encoder.hpp"

namespace mpress::engine {

/// The costs of messages between a team's members, on which all of them have agreed.
policy::LinkCosts links_of(const Messaging& messaging, const Team& team);

/// Blocks as messages: of an all-gather as those of a gather, whose root is everybody.
class ExchangeBlocks final : public BlockMap {
 public:
  /// Both outlive it.
  ExchangeBlocks(const Exchange& exchange, const Way& way, int members);

  BlockData outgoing(schedule::Block block) const override { return exchange_.outgoing(block); }
  BlockData incoming(schedule::Block block) const override {
    return exchange_.incoming(way_, block);
  }

 private:
  const Exchange& exchange_;
  const Way& way_;
};

/// A call of include/mpress/iso.h, or the part of one of MPI's that mpress moves.
class NeighbourCall final : public CollectiveOperation {
 public:
  /// What it refers to outlives it. `served`: its tag, and whether the call blocks.
  NeighbourCall(Messaging& messaging, const Collective& call, const Exchange& exchange, Team& team,
                const Served& served);

  /// Has the exchange itself.
  NeighbourCall(Messaging& messaging, const Collective& call,
                std::unique_ptr<const Exchange> exchange, Team& team, const Served& served)
      : NeighbourCall(messaging, call, *exchange, team, served) {
    kept_ = std::move(exchange);
  }

  void start(FloatModes modes) override;
  bool advance() override;
  bool needs_host() const override {
    return raw_ ? raw_->needs_host() : runner_ && runner_->needs_host();
  }
  void await(bool is_awaited) override;
  bool wait() override;
  trace::Called called() const override;
  Status status() const override { return status_; }
  double bound() const override { return bound_; }

  // Where payloads are kept:

  /// Has all that this process gets come, or begun to come, without an error?
  bool is_all_coming() const;
  /// Then: what each source brings, in the order of the list.
  std::vector<Summand> summands() const;
  void drop_payloads() { brought_.clear(); }

 private:
  void keep_payloads();
  bool is_kept(std::span<const int> slots) const;
  bool begin();
  Status copy_again();
  void note(Status status) {
    if (status_.is_ok()) status_ = status;
  }

  Messaging& messaging_;
  const Collective call_;
  std::unique_ptr<const Exchange> kept_;
  const Exchange& exchange_;
  Team& team_;
  const Way& way_;
  const bool is_blocking_;
  CallTag tag_;
  ExchangeBlocks blocks_;
  std::optional<Coding> coding_;
  std::optional<Frames> frames_;        ///< of what is packed, if anything is encoded
  std::optional<PackedRounds> packed_;  ///< one of these; the others while it is under way:
  std::optional<RawBlocks> raw_;
  std::unique_ptr<Envelopes> envelopes_;  ///< of the runner
  std::optional<Runner> runner_;
  std::vector<Summand> brought_;  ///< where payloads are kept, by places
  bool is_under_way_ = false;
  bool is_awaited_ = false;
  Status status_;
  double bound_ = 0;
};

}  // namespace mpress::engine
