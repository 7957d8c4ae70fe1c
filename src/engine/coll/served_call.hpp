// A collective call that mpress serves: its blocks, its schedule, and the schedule under way.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "engine/coll/blocks.hpp"
#include "engine/coll/long_pairs.hpp"
#include "engine/coll/route.hpp"
#include "engine/coll/runner.hpp"
#include "mpi/comm_info.hpp"
#include "schedule/schedule.hpp"

namespace mpress::engine {

/// Of any form: a blocking call waits for it, a non-blocking one has it once, a persistent one
/// starts it again and again. Raises nothing. One thread at a time calls it.
class ServedCall {
 public:
  /// `served`: as Routing says. A persistent call has its tag for its lifetime; others take it
  /// while they are under way, and wait for it. `pairs`: where set of these alone, without what is
  /// this rank's own. What it refers to outlives it.
  ServedCall(Job& job, const Collective& call, const Operands& operands, mpi::CommInfo& comm,
             Context& context, const Served& served, const LongPairs* pairs = nullptr);
  ServedCall(const ServedCall&) = delete;
  ServedCall& operator=(const ServedCall&) = delete;

  /// From now on advance() lets it proceed. Not while it is under way.
  void start();

  /// Waits for no rank. True once it is over: then what it received is the program's.
  bool advance();

  bool needs_host() const { return runner_ && runner_->needs_host(); }
  void await(bool is_awaited);

  /// For a call that blocks: see Runner.
  void wait_in_mpi() {
    if (runner_) runner_->wait_in_mpi();
  }

  /// How it is counted.
  trace::Called called() const {
    return {call_.op, static_cast<std::uint8_t>(served_.method.algorithm)};
  }

  /// Once it is over: an error code of MPI's.
  int code() const { return code_; }

 private:
  bool begin();
  void open();
  void start_own_copy();

  Job& job_;
  const Collective& call_;
  mpi::CommInfo& comm_;
  Context& context_;
  const Served served_;
  const bool keeps_tag_;
  const LongPairs* const pairs_;
  BlockMap blocks_;
  std::optional<schedule::Schedule> schedule_;
  std::optional<Runner> runner_;  ///< while it is under way
  bool is_awaited_ = false;
  bool is_run_ = false;      ///< all rounds are over
  bool has_copied_ = false;  ///< what is this rank's own, or begun to, or it is decoded
  int looks_ = 0;            ///< since the start
  int code_ = MPI_SUCCESS;
};

// Of blocking calls:

/// Waits for one that has started.
void wait_for(Job& job, ServedCall& served);

/// Counts one that is over, which began at `begin_ns`, and what it found out.
void count_blocking(Job& job, trace::Called called, std::uint64_t begin_ns);

}  // namespace mpress::engine
