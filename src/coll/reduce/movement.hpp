// One movement of data within a collective call that takes several: its blocks, its schedule, and
// the schedule under way.
#pragma once

#include <memory>
#include <utility>

#include "coll/blocks/element_blocks.hpp"
#include "coll/blocks/runner.hpp"
#include "schedule/schedule.hpp"

namespace mpress::engine {

class Movement {
 public:
  /// What it needs of a call.
  struct Of {
    Messaging& messaging;
    trace::Called called;
    Family family;
    const Team& team;
    int tag;
    bool is_failed;        ///< see Runner
    const Coding* coding;  ///< null: each origin decides
  };

  /// `shares`: blocks are encoded once for all of their readers, or kept as they come. What `of`
  /// refers to outlives it.
  Movement(const Of& of, bool shares, std::unique_ptr<const BlockMap> blocks,
           schedule::Schedule schedule)
      : call_{of.called.op, of.family, false, shares},
        blocks_(std::move(blocks)),
        schedule_(std::move(schedule)),
        envelopes_(of.team.envelopes(of.messaging, of.tag)),
        runner_(of.messaging, *envelopes_, call_, of.called, of.team, schedule_, *blocks_,
                of.is_failed, of.coding) {}
  Movement(const Movement&) = delete;
  Movement& operator=(const Movement&) = delete;

  Runner& runner() { return runner_; }
  const Runner& runner() const { return runner_; }

 private:
  const Collective call_;
  const std::unique_ptr<const BlockMap> blocks_;
  const schedule::Schedule schedule_;
  const std::unique_ptr<Envelopes> envelopes_;
  Runner runner_;
};

}  // namespace mpress::engine
