// What calls that receive before they return have in common (mpi/messages/receive_calls,
// mpi/messages/exchange).
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "mpi/calls/calls.hpp"
#include "mpi/calls/counted.hpp"
#include "mpi/job/job.hpp"
#include "mpi/messages/mpi_receive.hpp"
#include "mpi/messages/probed.hpp"
#include "mpi/messages/receive_calls.hpp"
#include "trace/record.hpp"

namespace mpress::engine {

/// The program's status, or our own where it ignores it: delivering needs one. Tells whether a call
/// of MPI's received: MPICH's may return success, and leave the status as it was, once a handler of
/// the program's was called.
class StatusOf {
 public:
  explicit StatusOf(MPI_Status* given)
      : used_(given == MPI_STATUS_IGNORE ? &own_ : given),
        source_before_(std::exchange(used_->MPI_SOURCE, no_rank)) {}
  StatusOf(const StatusOf&) = delete;
  StatusOf& operator=(const StatusOf&) = delete;
  ~StatusOf() {
    if (!has_answer()) used_->MPI_SOURCE = source_before_;
  }
  operator MPI_Status*() const { return used_; }
  MPI_Status& operator*() const { return *used_; }

  bool has_answer() const { return used_->MPI_SOURCE != no_rank; }

 private:
  static constexpr int no_rank = std::numeric_limits<int>::min();

  MPI_Status own_{};
  MPI_Status* used_;
  const int source_before_;
};

/// Receives a message that a probe has already taken from MPI, and raises what goes wrong.
int deliver_probed(Job& job, const ProbedMessage& probed, trace::Op op,
                   const ReceiveArguments& arguments, MPI_Status* status);

/// Where threads may probe while others receive, receives are posted under the queue's lock and
/// waited for outside it; what is under way proceeds meanwhile. Elsewhere one call does both.
inline bool must_post(const Job& job) {
  return job.threaded || !job.probed.empty() || !job.progress.idle();
}

/// Ends a blocking receive that MPI returned `code` for: delivers what has come, if it is
/// `watched`. Returns MPI's code, which has been raised.
int end_receive(MpiReceive& receive, bool watched, const StatusOf& status, std::uint64_t begin_ns,
                int code);

/// Posts a receive.
inline int post(const ReceiveArguments& posted, const MessageSource& from, MPI_Request* request) {
  return mpi::counted::Irecv(posted.buffer, posted.count, posted.type, from.peer, from.tag,
                             posted.comm, request);
}

/// The message that a probe has already taken; or null, and a receive is posted, with `code`.
std::unique_ptr<ProbedMessage> take_or_post(Job& job, const ReceiveArguments& posted,
                                            const MessageSource& from, MPI_Request* request,
                                            int& code);

}  // namespace mpress::engine
