#include "mpi/collectives/pairwise_call.hpp"

#include <utility>

#include "mpi/job/blocking.hpp"
#include "mpi/job/job.hpp"

namespace mpress::engine {

PairwiseCall::PairwiseCall(Job& job, const Collective& call, const Operands& operands,
                           std::shared_ptr<mpi::CommInfo> comm, Team& team, const Served& served,
                           LongPairs pairs)
    : job_(job),
      call_(call),
      operands_(operands),
      comm_(std::move(comm)),
      pairs_(std::move(pairs)),
      begin_ns_(trace::now_ns()),
      served_(make_pairs_operation(job, call_, operands, team, served, pairs_)) {
  served_->start(FloatModes::of_thread());
  // MPI's call may wait for long. What others need of this process for their blocks they have then.
  is_over_ = served_->advance();
  while (!is_over_ && served_->needs_host()) is_over_ = served_->advance();
  before_blocking(job);
}

int PairwiseCall::end(int code) {
  if (!is_over_) wait_for(job_, *served_);
  count_blocking(job_, served_->called(), begin_ns_);
  tell_outcome(operands_.asked, *served_);
  if (code != MPI_SUCCESS || served_->status().is_ok()) return code;
  return comm_->raise(job_.code_of(served_->status()));
}

}  // namespace mpress::engine
