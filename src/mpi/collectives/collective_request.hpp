// Requests for collective calls that mpress serves, all of them or their long pairs.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "coll/collective_operation.hpp"
#include "coll/team.hpp"
#include "mpi/collectives/kept_call.hpp"
#include "mpi/collectives/long_pairs.hpp"
#include "mpi/collectives/mpi_part.hpp"
#include "mpi/collectives/route.hpp"
#include "mpi/objects/comm_info.hpp"
#include "mpi/requests/finished_request.hpp"
#include "mpi/requests/request.hpp"

namespace mpress::engine {

/// A request whose call mpress completes: its blocks, and what MPI moves of it. One that is over
/// before the program looks stays in the table, with what went wrong.
class CollectiveRequest : public Request {
 public:
  CollectiveRequest(Job& job, const Collective& call, std::shared_ptr<mpi::CommInfo> comm,
                    Team& team, std::unique_ptr<KeptCall> kept, bool is_persistent);

  bool advance() final;
  bool needs_host() const final { return blocks_ && blocks_->needs_host(); }
  bool may_run_in_hook() const final;
  bool may_be_late(const Job&) const final { return !is_ended_.load(std::memory_order_relaxed); }
  bool only_mpress_completes() const final { return true; }
  bool must_end() const final { return true; }
  void await(bool alone) final { is_awaited_.store(alone, std::memory_order_relaxed); }
  Ending finish(Job&, MPI_Status&) final;
  /// Collective calls cannot be cancelled.
  int cancel(MPI_Request*) final { return comm_->raise(MPI_ERR_REQUEST); }

 protected:
  /// Makes the operation of long pairs alone, which MPI's part then leaves out; that is to be on
  /// `comm`.
  void prepare_pairs(const Served& served, LongPairs pairs, MPI_Comm comm);

  /// Gives the program, or its persistent request, what completes when this is over.
  void open(MPI_Request* request) { open_.open_empty(request); }

  /// Of a persistent call: starts its blocks, and begins. Returns MPI_SUCCESS.
  int start_again();

  /// Begins, and flushes what needs this process: the program may compute for long now.
  void begin();

  /// It has failed; what others need of it goes on.
  void fail(int code) { code_ = code; }

  Job& job_;
  const Collective call_;
  const std::shared_ptr<mpi::CommInfo> comm_;  ///< before what refers to its team
  Team& team_;

  const TeamHold hold_;
  const std::unique_ptr<KeptCall> kept_;
  std::optional<LongPairs> pairs_;
  MpiPart mpi_part_;
  std::unique_ptr<CollectiveOperation> blocks_;

 private:
  /// Asked first, until it says so: is decided what is to be done?
  virtual bool decide() { return true; }

  OpenRequest open_;
  bool has_blocks_ = false;  ///< they are over
  int code_ = MPI_SUCCESS;
  std::atomic<bool> is_ended_{false};
  std::atomic<bool> is_awaited_{false};  ///< asked while another thread lets it proceed
};

}  // namespace mpress::engine
