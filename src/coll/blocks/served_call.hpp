// A collective call that moves data, served by mpress: its blocks, its schedule, and the schedule
// under way.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "coll/blocks/call_blocks.hpp"
#include "coll/blocks/long_pairs.hpp"
#include "coll/blocks/runner.hpp"
#include "coll/blocks/served.hpp"
#include "coll/call_here.hpp"
#include "coll/call_tag.hpp"
#include "coll/collective_operation.hpp"
#include "schedule/schedule.hpp"

namespace mpress::engine {

class ServedCall final : public CollectiveOperation {
 public:
  /// Of long pairs alone without what is this rank's own.
  ServedCall(const CallHere& here, const Served& served);

  void start(FloatModes modes) override;
  bool advance() override;
  bool needs_host() const override { return runner_ && runner_->needs_host(); }
  void await(bool is_awaited) override;
  bool wait() override { return runner_ && runner_->wait(); }
  trace::Called called() const override {
    return {call_.op, static_cast<std::uint8_t>(served_.method.algorithm)};
  }
  Status status() const override { return status_; }
  double bound() const override { return bound_; }

 private:
  static std::optional<Coding> coding_of(const CallHere& here, bool encodes);
  bool begin();
  void open();
  void start_own_copy();

  Messaging& messaging_;
  const Collective call_;
  Team& team_;
  const Served served_;
  CallTag tag_;
  const LongPairs* const pairs_;
  CallBlocks blocks_;
  const std::optional<Coding> coding_;  ///< of a call that says so itself
  std::optional<schedule::Schedule> schedule_;
  std::unique_ptr<Envelopes> envelopes_;  ///< while it is under way, as
  std::optional<Runner> runner_;
  bool is_awaited_ = false;
  bool is_run_ = false;      ///< all rounds are over
  bool has_copied_ = false;  ///< what is this rank's own, or begun to, or it is decoded
  int looks_ = 0;            ///< since the start
  Status status_;
  double bound_ = 0;
};

}  // namespace mpress::engine
