#include "mpi/collectives/collective_request.hpp"

#include <utility>

#include "mpi/collectives/operations.hpp"
#include "mpi/job/job.hpp"

namespace mpress::engine {

CollectiveRequest::CollectiveRequest(Job& job, const Collective& call,
                                     std::shared_ptr<mpi::CommInfo> comm, Team& team,
                                     std::unique_ptr<KeptCall> kept, bool is_persistent)
    : Request(is_persistent),
      job_(job),
      call_(call),
      comm_(std::move(comm)),
      team_(team),
      hold_(team),
      kept_(std::move(kept)),
      mpi_part_(job) {}

/// Where MPI's hook may not start messages, a thread proceeds, or such calls are exchanges of
/// neighbours, whose messages have all begun.
bool CollectiveRequest::may_run_in_hook() const { return job_.collectives.in_hook; }

void CollectiveRequest::prepare_pairs(const Served& served, LongPairs pairs, MPI_Comm comm) {
  pairs_.emplace(std::move(pairs));
  kept_->leave_out(*pairs_, comm);
  blocks_ = make_pairs_operation(job_, call_, kept_->operands(), team_, served, *pairs_);
}

int CollectiveRequest::start_again() {
  set_active(true);
  renew();
  open(&stand_in_);
  blocks_->start(FloatModes::of_thread());
  begin();
  return MPI_SUCCESS;
}

void CollectiveRequest::begin() {
  is_ended_.store(false, std::memory_order_relaxed);
  has_blocks_ = false;
  code_ = MPI_SUCCESS;
  bool is_over = advance();
  while (!is_over && !job_.progress.is_threaded() && needs_host()) is_over = advance();
  if (is_over) return;
  start_thread_if_needed(job_);
  follow(job_);
}

bool CollectiveRequest::advance() {
  if (!decide()) return false;
  if (blocks_ && !has_blocks_) {
    blocks_->await(is_awaited_.load(std::memory_order_relaxed));
    has_blocks_ = blocks_->advance();
  }
  const bool is_rest_over = mpi_part_.advance();
  if (!is_rest_over || (blocks_ && !has_blocks_)) return false;
  if (code_ == MPI_SUCCESS && blocks_) code_ = job_.code_of(blocks_->status());
  if (code_ == MPI_SUCCESS) code_ = mpi_part_.code();
  if (code_ == MPI_SUCCESS) code_ = mpi_part_.deliver();
  if (blocks_) tell_outcome(kept_->operands().asked, *blocks_);
  is_ended_.store(true, std::memory_order_relaxed);
  open_.finish();
  return true;
}

Ending CollectiveRequest::finish(Job&, MPI_Status&) {
  if (mpi_part_.is_raised()) return {mpi_part_.code(), nullptr};
  return {code_, code_ == MPI_SUCCESS ? nullptr : comm_};
}

}  // namespace mpress::engine
