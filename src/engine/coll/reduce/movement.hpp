// One movement of data within a collective call that takes several: its buffers, its schedule, and
// the schedule under way.
#pragma once

#include <memory>
#include <utility>

#include "coll/blocks/runner.hpp"
#include "engine/coll/blocks/blocks.hpp"
#include "engine/coll/operands.hpp"
#include "engine/coll/route.hpp"
#include "schedule/schedule.hpp"

namespace mpress::engine {

class Movement {
 public:
  /// What it needs of a call.
  struct Of {
    Job& job;
    trace::Called called;
    Family family;
    const Team& team;
    int tag;
    int code;              ///< an error: blocks of this rank come empty
    const Coding* coding;  ///< null: each origin decides
  };

  /// `shares`: blocks are encoded once for all of their readers, or kept as they come. Arrays of
  /// `operands` outlive it, and so does what `of` refers to.
  Movement(const Of& of, schedule::Op op, bool shares, const Operands& operands,
           schedule::Schedule schedule, OperandBlocks::Place place = {})
      : call_{of.called.op, of.family, false, shares},
        operands_(operands),
        blocks_(of.job, op, operands_, of.team.rank(), of.team.size(), 1, std::move(place)),
        schedule_(std::move(schedule)),
        envelopes_(of.team.envelopes(of.job, of.tag)),
        runner_(of.job, *envelopes_, call_, of.called, of.team, schedule_, blocks_,
                of.code != MPI_SUCCESS, of.coding) {}
  Movement(const Movement&) = delete;
  Movement& operator=(const Movement&) = delete;

  Runner& runner() { return runner_; }
  const Runner& runner() const { return runner_; }

 private:
  const Collective call_;
  const Operands operands_;
  OperandBlocks blocks_;
  const schedule::Schedule schedule_;
  const std::unique_ptr<Envelopes> envelopes_;
  Runner runner_;
};

}  // namespace mpress::engine
