// What calls that receive before they return have in common (p2p/receive/receive_calls,
// p2p/exchange).
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "engine/job/job.hpp"
#include "engine/p2p/receive/probed.hpp"
#include "engine/p2p/receive/receive.hpp"
#include "engine/p2p/receive/receive_calls.hpp"
#include "engine/p2p/standing.hpp"
#include "mpi/calls/calls.hpp"
#include "mpi/calls/counted.hpp"
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

/// The kind of a blocking receive from one rank; nothing where it asks for anything of its own.
inline std::optional<Standing::Kind> kind_of(trace::Op op, const ReceiveArguments& arguments,
                                             const Envelope& from) {
  if (from.peer < 0 || arguments.outcome) return std::nullopt;
  return Standing::Kind{
      trace::Direction::receive, op, from.peer, arguments.comm, arguments.type, arguments.count};
}

/// Ends a blocking receive that MPI returned `code` for: delivers what has come, if it is
/// `watched`, which may let the next ones of its `kind` stand. Returns MPI's code, which has been
/// raised.
int end_receive(Job& job, Receive& receive, bool watched, const std::optional<Standing::Kind>& kind,
                const StatusOf& status, std::uint64_t begin_ns, int code);

/// Where messages of this kind are counted, if one that MPI receives by a blocking call may be like
/// the last one; else null.
inline trace::Row* row_as_before(const Job& job, const std::optional<Standing::Kind>& kind) {
  if (!kind || !job.in_place.empty() || must_post(job)) return nullptr;
  const Standing* const standing = Standing::find(*kind);
  return standing ? &standing->row() : nullptr;
}

/// Receives such a message by `call`, which calls MPI with the status that it is given.
template <typename Call>
int receive_as_before(Job& job, const Standing::Kind& kind, trace::Row& row,
                      const ReceiveArguments& arguments, MPI_Status* given, Call call) {
  const StatusOf status(given);
  const int code = call(status);
  job.links.channel.outbox.excuse();
  job.timings.collect();
  if (code != MPI_SUCCESS || !status.has_answer()) return code;
  const auto bytes = static_cast<std::size_t>(mpi::counted::bytes_of(*status));
  if (!wire::is_frame_size(bytes)) {
    trace::add_message(row, bytes, bytes);
    return MPI_SUCCESS;
  }
  Receive receive;
  if (!receive.look_at_received(job, kind.op, arguments)) return MPI_SUCCESS;
  const int delivered = receive.deliver(job, *status);
  if (!receive.row_of_raw()) Standing::interrupt(kind);
  return delivered == MPI_SUCCESS ? delivered : receive.comm()->raise(delivered);
}

/// Posts a receive.
inline int post(const Receive& receive, const Envelope& from, MPI_Comm comm, MPI_Request* request) {
  return mpi::counted::Irecv(receive.buffer(), receive.count(), receive.type(), from.peer, from.tag,
                             comm, request);
}

/// The message that a probe has already taken; or null, and a receive is posted, with `code`.
std::unique_ptr<ProbedMessage> take_or_post(Job& job, const Receive& receive, const Envelope& from,
                                            MPI_Comm comm, MPI_Request* request, int& code);

}  // namespace mpress::engine
