#include "mpi/collectives/collective.hpp"

#include <atomic>
#include <utility>

#include "coll/blocks/served_call.hpp"
#include "core/staging.hpp"
#include "core/stream_order.hpp"
#include "mpi/collectives/collective_request.hpp"
#include "mpi/collectives/streamed_call.hpp"
#include "mpi/job/job.hpp"
#include "mpi/objects/self_comm.hpp"
#include "trace/message.hpp"

namespace mpress::engine {
namespace {

using Server = Routing::Server;

/// The long pairs of this rank. A call that has none is counted as left to MPI.
std::optional<LongPairs> long_pairs_or_leave(Job& job, const Collective& call, const Team& team,
                                             const Operands& operands) {
  LongPairs found = find_long_pairs(job, team, operands);
  if (found.any()) return found;
  job.record.count_left(call.op, "no pair is long enough");
  return std::nullopt;
}

void wait_for(Job& job, Routing& routing, Team& team) {
  job.progress.wait_until([&] { return routing.advance(); });
  routing.pass();
  team.order().settle();
}

/// Of a blocking call that began at `begin_ns`. Raises.
int finish(Job& job, CollectiveOperation& served, const Operands& operands, mpi::CommInfo& comm,
           std::uint64_t begin_ns) {
  served.start(FloatModes::of_thread());
  wait_for(job, served);
  count_blocking(job, served.called(), begin_ns);
  tell_outcome(operands.asked, served);
  return served.status().is_ok() ? MPI_SUCCESS : comm.raise(job.code_of(served.status()));
}

/// A non-blocking call: first it is decided who serves it.
class ImmediateCall final : public CollectiveRequest {
 public:
  ImmediateCall(Job& job, const Collective& call, const Candidate& candidate, Team& team,
                std::unique_ptr<KeptCall> kept)
      : CollectiveRequest(job, call, candidate.comm, team, std::move(kept), false),
        routing_(job, call_, Form::immediate, kept_->operands(), candidate, team) {}

  void start(MPI_Request* request) {
    open(request);
    begin();
  }

 private:
  bool decide() override;
  void enter(Job& job) override;

  Routing routing_;
  const FloatModes modes_ = FloatModes::of_thread();  ///< it may be another that starts the blocks
  bool is_begun_ = false;
};

/// A thousand that wait for their turn are not looked at a thousand times.
void ImmediateCall::enter(Job& job) {
  if (!routing_.stand_in_line(shared_from_this())) CollectiveRequest::enter(job);
}

/// MPI's part is on the private communicator: the program may have made other calls on its own by
/// now, and not the same on all ranks.
bool ImmediateCall::decide() {
  if (is_begun_) return true;
  if (!routing_.advance()) return false;
  const Server server = routing_.server();
  const bool is_mpis = server == Server::mpi || server == Server::both;
  if (is_mpis && !routing_.has_reached()) return false;
  is_begun_ = true;
  if (server == Server::failed) fail(routing_.failure());
  if (server == Server::mpress) blocks_ = routing_.operation();
  if (server == Server::both) {
    auto pairs = long_pairs_or_leave(job_, call_, team_, kept_->operands());
    if (pairs) prepare_pairs(routing_.served(), std::move(*pairs), comm_of(team_));
  }
  if (is_mpis) {
    mpi_part_.begin_privately(*kept_, comm_of(team_));
  }
  if (blocks_) blocks_->start(modes_);
  routing_.pass();
  return true;
}

/// A non-blocking call that was decided at once, of which MPI moves all but the long pairs.
class PairwiseRequest final : public CollectiveRequest {
 public:
  PairwiseRequest(Job& job, const Collective& call, const Candidate& candidate, Team& team,
                  std::unique_ptr<KeptCall> kept, PairsToBegin found)
      : CollectiveRequest(job, call, candidate.comm, team, std::move(kept), false) {
    prepare_pairs(found.served, std::move(found.pairs), kept_->operands().comm);
  }

  int start(MPI_Request* request) {
    const int code = mpi_part_.begin(*kept_);
    if (code != MPI_SUCCESS) return code;
    open(request);
    blocks_->start(FloatModes::of_thread());
    begin();
    return MPI_SUCCESS;
  }
};

/// A persistent call that mpress serves, or of which it serves the long pairs. The program's
/// request is one of MPI's that never starts: what completes is another in its place, at each
/// start.
class PersistentCall final : public CollectiveRequest {
 public:
  PersistentCall(Job& job, const Collective& call, const Candidate& candidate, Team& team,
                 std::unique_ptr<KeptCall> kept, const Served& served)
      : CollectiveRequest(job, call, candidate.comm, team, std::move(kept), true), served_(served) {
    team.order().take(served.tag);
  }
  ~PersistentCall() override { team_.order().give(served_.tag); }

  void make(std::unique_ptr<CollectiveOperation> blocks) { blocks_ = std::move(blocks); }

  /// Of long pairs; MPI's part is made here. Raises, and returns MPI's error code.
  int make(LongPairs pairs) {
    prepare_pairs(served_, std::move(pairs), kept_->operands().comm);
    has_mpi_part_ = true;
    return mpi_part_.make(*kept_);
  }

  int start(Job& job, MPI_Request*) override {
    const auto order = order_behind_defaults(job, kept_->operands());
    if (order && !order->await()) return comm_->raise(job.device_code);
    if (has_mpi_part_) {
      const int code = mpi_part_.start();
      if (code != MPI_SUCCESS) return code;
    }
    return start_again();
  }

 private:
  const Served served_;
  bool has_mpi_part_ = false;
};

/// Says once why calls with streams take the host.
void tell_of_waiting(const Job& job) {
  static std::atomic<bool> has_told{false};
  if (job.rank != 0 || has_told.exchange(true)) return;
  trace::say(
      "a call with a stream waits on the host for what the stream holds: devices alone serve "
      "uncompressed reductions and short blocks between GPUs of one host, once they have opened "
      "memory for each other (docs/c.md)");
}

/// What joint kernels serve behind the stream ends by itself. Of anything else the host waits, for
/// the stream and then for the call.
std::optional<int> serve_in_stream(Job& job, const Collective& call, const Operands& operands,
                                   const Candidate& candidate, Team& team) {
  const auto streamed = std::make_shared<StreamedCall>(job, call, operands, candidate.comm, team);
  Routing routing(job, streamed->call(), Form::blocking, streamed->operands(), candidate, team);
  const std::uint64_t begin = trace::now_ns();
  wait_for(job, routing, team);
  if (routing.server() == Server::mpi) return std::nullopt;
  if (routing.server() == Server::failed) return candidate.comm->raise(routing.failure());
  std::unique_ptr<CollectiveOperation> served = routing.operation();
  if (served->is_in_stream()) {
    count_blocking(job, served->called(), begin);
    tell_outcome(operands.asked, *served);
    streamed->keep(std::move(served));
    job.progress.add(streamed);
    return MPI_SUCCESS;
  }
  // It is reached, or has failed: then this member takes part all the same, as others wait for it.
  const int code = finish(job, *served, operands, *candidate.comm, begin);
  return code == MPI_SUCCESS ? await_streams(job, operands) : code;
}

}  // namespace

std::shared_ptr<StreamOrder> order_behind_defaults(Job& job, const Operands& operands) {
  const int sent = BounceBuffer::device_of(job, operands.send);
  const int received = BounceBuffer::device_of(job, operands.receive);
  auto order = StreamOrder::behind_defaults(job, received);
  if (sent == received) return order;
  // One place is enough: work behind the other is waited for here.
  auto other = StreamOrder::behind_defaults(job, sent);
  if (!order) return other;
  if (other) other->await();
  return order;
}

int await_streams(Job& job, const Operands& operands) {
  if (!operands.order()) return MPI_SUCCESS;
  if (operands.asked && operands.asked->names_stream) tell_of_waiting(job);
  if (operands.order()->await()) return MPI_SUCCESS;
  const auto comm = mpi::comm_info(operands.comm);
  return comm ? comm->raise(job.device_code) : job.device_code;
}

std::optional<int> serve_collective(Job& job, const Collective& call, const Operands& operands,
                                    std::unique_ptr<PairwiseCall>& begun) {
  const Candidate candidate = candidate_or_leave(job, call, Form::blocking, operands);
  if (!candidate.comm || leave_if_brief(job, call, candidate)) return std::nullopt;
  Team& team = team_of(job, candidate, Form::blocking);
  if (leave_if_short(job, call, operands, candidate, team)) return std::nullopt;
  if (call.has_own_counts) {
    if (const int code = await_streams(job, operands); code != MPI_SUCCESS) return code;
  } else if (operands.order() && operands.order()->has_stream()) {
    return serve_in_stream(job, call, operands, candidate, team);
  }
  const auto begin_pairs = [&](const Served& served) {
    auto pairs = long_pairs_or_leave(job, call, team, operands);
    if (!pairs) return;
    begun = std::make_unique<PairwiseCall>(job, call, operands, candidate.comm, team, served,
                                           std::move(*pairs));
  };
  if (may_decide_now(candidate, team)) {
    if (const auto served = decide_now(job, call, operands, team)) begin_pairs(*served);
    return std::nullopt;
  }
  Routing routing(job, call, Form::blocking, operands, candidate, team);
  const std::uint64_t begin = trace::now_ns();
  wait_for(job, routing, team);
  if (routing.server() == Server::mpi) return std::nullopt;
  if (routing.server() == Server::both) {
    begin_pairs(routing.served());
    return std::nullopt;
  }
  mpi::CommInfo& comm = *candidate.comm;
  if (routing.server() == Server::failed) return comm.raise(routing.failure());
  return finish(job, *routing.operation(), operands, comm, begin);
}

int begin_collective(Job& job, const Collective& call, const Candidate& candidate,
                     std::unique_ptr<KeptCall> kept, MPI_Request* request) {
  Team& team = team_of(job, candidate, Form::immediate);
  auto begun = std::make_shared<ImmediateCall>(job, call, candidate, team, std::move(kept));
  begun->start(request);
  job.requests.insert(*request, std::move(begun));
  return MPI_SUCCESS;
}

std::optional<PairsToBegin> find_pairs(Job& job, const Collective& call, const Candidate& candidate,
                                       const Operands& operands) {
  Team& team = team_of(job, candidate, Form::immediate);
  std::optional<Served> served;
  if (may_decide_now(candidate, team)) {
    served = decide_now(job, call, operands, team);
  } else {
    Routing routing(job, call, Form::immediate, operands, candidate, team);
    wait_for(job, routing, team);  // for no rank: the team is settled
    if (routing.server() == Server::both) served = routing.served();
  }
  if (!served) return std::nullopt;
  auto pairs = long_pairs_or_leave(job, call, team, operands);
  if (!pairs) return std::nullopt;
  return PairsToBegin{std::move(*pairs), *served};
}

int begin_pairwise(Job& job, const Collective& call, const Candidate& candidate, PairsToBegin found,
                   std::unique_ptr<KeptCall> kept, MPI_Request* request) {
  if (const int code = await_streams(job, kept->operands()); code != MPI_SUCCESS) return code;
  Team& team = team_of(job, candidate, Form::immediate);
  auto begun = std::make_shared<PairwiseRequest>(job, call, candidate, team, std::move(kept),
                                                 std::move(found));
  const int code = begun->start(request);
  if (code == MPI_SUCCESS) job.requests.insert(*request, std::move(begun));
  return code;
}

std::optional<int> make_collective(Job& job, const Collective& call, const Candidate& candidate,
                                   std::unique_ptr<KeptCall> kept, MPI_Request* request) {
  Team& team = team_of(job, candidate, Form::persistent);
  Routing routing(job, call, Form::persistent, kept->operands(), candidate, team);
  wait_for(job, routing, team);
  if (routing.server() == Server::mpi) return std::nullopt;
  if (routing.server() == Server::failed) return candidate.comm->raise(routing.failure());
  std::optional<LongPairs> pairs;
  if (routing.server() == Server::both) {
    pairs = long_pairs_or_leave(job, call, team, kept->operands());
    if (!pairs) return std::nullopt;
  }
  auto made = std::make_shared<PersistentCall>(job, call, candidate, team, std::move(kept),
                                               routing.served());
  if (!pairs) {
    made->make(routing.operation());
  } else if (const int code = made->make(std::move(*pairs)); code != MPI_SUCCESS) {
    return code;
  }
  // One that can be told from all others, and matches nothing.
  const int code = mpi::calls().Recv_init(nullptr, 0, MPI_BYTE, 0, 0, mpi::self_comm(), request);
  if (code != MPI_SUCCESS) return candidate.comm->raise(code);
  job.requests.insert(*request, std::move(made));
  return MPI_SUCCESS;
}

}  // namespace mpress::engine
