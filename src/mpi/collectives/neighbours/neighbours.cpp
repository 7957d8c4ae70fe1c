#include "mpi/collectives/neighbours/neighbours.hpp"

#include <array>
#include <new>
#include <string>
#include <utility>

#include "coll/neighbourhoods/neighbour_call.hpp"
#include "coll/neighbourhoods/neighbour_sum.hpp"
#include "core/stream_order.hpp"
#include "mpi/collectives/collective_request.hpp"
#include "mpi/collectives/operations.hpp"
#include "mpi/job/job.hpp"
#include "mpi/objects/self_comm.hpp"
#include "mpi/progress_hook.hpp"
#include "trace/message.hpp"

namespace mpress::engine {
namespace {

/// Where members wait for each other in memory: one may need what this process has to send before.
void let_mpi_proceed(const Team& team) {
  int found = 0;
  if (mpi::in_progress_hook()) return;
  mpi::calls().Iprobe(MPI_ANY_SOURCE, team.first_block_tag(), comm_of(team), &found,
                      MPI_STATUS_IGNORE);
}

/// A call's place in the order of its communicator's collective calls: by it members give out tags
/// alike.
class Turn {
 public:
  Turn(Job& job, Team& team, Form form, const Exchange& exchange)
      : job_(job), team_(team), form_(form), exchange_(exchange), number_(team.order().draw()) {}

  /// Never waits. True when it is decided how the call is served: see code(), or served().
  bool advance() {
    if (is_decided_) return true;
    if (!agreement_) {
      if (!team_.order().is_turn(number_) || !team_.advance()) return false;
      decide();
    }
    if (agreement_) {
      if (!agreement_->advance()) {
        let_mpi_proceed(team_);
        return false;
      }
      if (agreement_->failed() || agreement_->result()[0] != 0) {
        trace::say("rank " + std::to_string(job_.rank) +
                   ": nothing serves an exchange of neighbours: " +
                   (agreement_->failed() ? "a member has ended"
                                         : "the communicator has too many persistent calls"));
        code_ = MPI_ERR_OTHER;
      } else if (agreement_->result()[1] != ~agreement_->result()[2]) {
        code_ = job_.hints_code;
      }
      is_decided_ = true;
    }
    return is_decided_;
  }

  int code() const { return code_; }
  const Served& served() const { return served_; }

  /// The next call may be decided.
  void pass() {
    if (std::shared_ptr<Operation> next = team_.order().pass()) job_.progress.add(std::move(next));
  }
  bool stand_in_line(std::shared_ptr<Operation> call) {
    return team_.order().stand_in_line(number_, std::move(call));
  }

 private:
  void decide() {
    is_decided_ = true;
    served_.is_blocking = form_ == Form::blocking;
    if (!team_.is_ready()) {
      trace::say("rank " + std::to_string(job_.rank) +
                 ": nothing serves an exchange of neighbours: " + team_.why_not());
      code_ = MPI_ERR_OTHER;
      return;
    }
    bool is_unsure = false;
    if (form_ == Form::persistent) {
      const std::uint64_t made = team_.order().next_persistent();
      served_.tag = CallOrder::persistent_tag(made);
      // Members free persistent calls when they like.
      is_unsure = made >= CallOrder::persistent_tags;
    } else {
      served_.tag = team_.order().next_tag();
    }
    // The codec of a reduction's vectors also decides how they travel.
    const Exchange::Sum* const sum = exchange_.sum ? &*exchange_.sum : nullptr;
    const bool may_encode = sum && may_encode_sum(job_, exchange_);
    if (!is_unsure && !may_encode) return;
    const bool is_taken = is_unsure && team_.order().is_taken(served_.tag);
    Asked asked;
    if (may_encode) asked.spec = spec_of(job_.config, exchange_, team_);
    const std::array told{Word{Combine::bit_or, is_taken ? 1u : 0u},
                          Word{Combine::max, asked.hash()}, Word{Combine::max, ~asked.hash()}};
    agreement_ = team_.agreements().combine(told);
    is_decided_ = false;
  }

  Job& job_;
  Team& team_;
  const Form form_;
  const Exchange& exchange_;
  const std::uint64_t number_;
  std::shared_ptr<Agreement> agreement_;
  bool is_decided_ = false;
  int code_ = MPI_SUCCESS;
  Served served_;
};

/// Of a call that may wait.
void wait_for(Job& job, Turn& turn, Team& team) {
  job.progress.wait_until([&] { return turn.advance(); });
  turn.pass();
  team.order().settle();
}

std::unique_ptr<CollectiveOperation> operation_of(Job& job, const Collective& call,
                                                  const Exchange& exchange, Team& team,
                                                  const Served& served) {
  if (exchange.sum) {
    return std::make_unique<NeighbourSum>(job, call, exchange, team, served);
  }
  return std::make_unique<NeighbourCall>(job, call, exchange, team, served);
}

/// The exchange of a call that outlives the program's arguments.
class KeptExchange final : public KeptCall {
 public:
  KeptExchange(Job& job, ProgramExchange exchange) : exchange_(std::move(exchange)) {
    exchange_.keep_types(job);
    operands_.comm = exchange_.comm;
    operands_.asked = exchange_.asked;
    operands_.defaults = exchange_.defaults;
  }
  const ProgramExchange& exchange() const { return exchange_; }

  // MPI moves nothing of it.
  void leave_out(const LongPairs&, MPI_Comm) override {}
  int begin(StagedCall&, MPI_Comm, MPI_Request*) override { return MPI_ERR_OTHER; }

 private:
  ProgramExchange exchange_;
};

class ExchangeRequest : public CollectiveRequest {
 public:
  ExchangeRequest(Job& job, const Collective& call, std::shared_ptr<mpi::CommInfo> comm, Team& team,
                  std::unique_ptr<KeptExchange> kept, bool is_persistent)
      : CollectiveRequest(job, call, std::move(comm), team, std::move(kept), is_persistent) {}

 protected:
  const ProgramExchange& exchange() const {
    return static_cast<const KeptExchange&>(*kept_).exchange();
  }
  /// MPI may call this, which nothing may leave by an exception; others wait for messages.
  void prepare(const Served& served) try {
    blocks_ = operation_of(job_, call_, exchange(), team_, served);
  } catch (const std::bad_alloc&) {
    mpi::fatal("no memory for the schedule of a neighbourhood");
  }
};

class ImmediateExchange final : public ExchangeRequest {
 public:
  ImmediateExchange(Job& job, const Collective& call, std::shared_ptr<mpi::CommInfo> comm,
                    Team& team, std::unique_ptr<KeptExchange> kept)
      : ExchangeRequest(job, call, std::move(comm), team, std::move(kept), false),
        turn_(job, team, Form::immediate, this->exchange()) {}

  void start(MPI_Request* request) {
    open(request);
    begin();
  }

 private:
  bool decide() override {
    if (is_begun_) return true;
    if (!turn_.advance()) return false;
    const auto& order = exchange().defaults;
    if (order && !order->is_reached()) return false;
    if (turn_.code() == MPI_SUCCESS) {
      prepare(turn_.served());
      blocks_->start(modes_);
    } else {
      fail(turn_.code());
    }
    is_begun_ = true;
    turn_.pass();
    return true;
  }
  void enter(Job& job) override {
    if (is_begun_ || !turn_.stand_in_line(shared_from_this())) CollectiveRequest::enter(job);
  }

  Turn turn_;
  const FloatModes modes_ = FloatModes::of_thread();  ///< it may be another that starts the blocks
  bool is_begun_ = false;
};

class PersistentExchange final : public ExchangeRequest {
 public:
  PersistentExchange(Job& job, const Collective& call, std::shared_ptr<mpi::CommInfo> comm,
                     Team& team, std::unique_ptr<KeptExchange> kept, const Served& served)
      : ExchangeRequest(job, call, std::move(comm), team, std::move(kept), true), served_(served) {
    team.order().take(served.tag);
    prepare(served);
  }
  ~PersistentExchange() override { team_.order().give(served_.tag); }

  int start(Job& job, MPI_Request*) override {
    // Members that have started wait for this one: a device that fails is found by its blocks.
    if (const auto order = order_behind_defaults(job, exchange())) order->await();
    return start_again();
  }

 private:
  const Served served_;
};

/// Moves what a lone process has for itself.
int move_own(Job& job, const ProgramExchange& exchange) {
  const std::optional<Asked>& asked = exchange.asked;
  if (asked && asked->outcome) *asked->outcome = {true, 0};
  return job.code_of(exchange.sum ? fold_own(job, exchange) : copy_own(job, exchange));
}

/// Makes a request of MPI's that is over. Returns MPI's error code.
int open_finished(MPI_Request* request) {
  OpenRequest over;
  over.open_empty(request);
  return over.finish();
}

/// A persistent call of a process that is alone: it ends when it begins.
class LoneExchange final : public Request {
 public:
  LoneExchange(Job& job, std::shared_ptr<mpi::CommInfo> comm, ProgramExchange exchange)
      : Request(true), comm_(std::move(comm)), exchange_(std::move(exchange)) {
    exchange_.keep_types(job);
  }

  int start(Job& job, MPI_Request*) override {
    if (const auto order = order_behind_defaults(job, exchange_)) order->await();
    const int code = move_own(job, exchange_);
    if (code != MPI_SUCCESS) return comm_->raise(code);
    set_active(true);
    renew();
    return open_finished(&stand_in_);
  }
  bool only_mpress_completes() const override { return true; }
  Ending finish(Job&, MPI_Status&) override { return {}; }

 private:
  const std::shared_ptr<mpi::CommInfo> comm_;
  ProgramExchange exchange_;
};

/// Has a communicator no other process? Such ones have no team.
bool is_lone(const mpi::CommInfo& comm) { return comm.world_ranks.size() == 1; }

int exchange_alone(Job& job, const mpi::CommInfo& comm, const ProgramExchange& exchange) {
  if (exchange.defaults) exchange.defaults->await();
  const int code = move_own(job, exchange);
  return code == MPI_SUCCESS ? code : comm.raise(code);
}

}  // namespace

bool may_exchange(Job& job, const std::shared_ptr<mpi::CommInfo>& comm) {
  return comm && (is_lone(*comm) || job.teams.may_have(*comm));
}

bool needs_preparation(const Job& job) {
  return !job.collectives.immediate || !job.collectives.makes_teams;
}

void prepare_exchanges(Job& job, const std::shared_ptr<mpi::CommInfo>& comm) {
  if (!may_exchange(job, comm) || is_lone(*comm)) return;
  Team& team = *job.teams.of_blocking(comm);
  const Exchange none;
  Turn turn(job, team, Form::blocking, none);
  wait_for(job, turn, team);
}

int exchange(Job& job, const Collective& call, const std::shared_ptr<mpi::CommInfo>& comm,
             const ProgramExchange& exchange) {
  if (is_lone(*comm)) return exchange_alone(job, *comm, exchange);
  Team& team = *job.teams.of_blocking(comm);
  const std::uint64_t begin = trace::now_ns();
  Turn turn(job, team, Form::blocking, exchange);
  wait_for(job, turn, team);
  if (turn.code() != MPI_SUCCESS) return comm->raise(turn.code());
  if (exchange.defaults) exchange.defaults->await();
  const auto served = operation_of(job, call, exchange, team, turn.served());
  served->start(FloatModes::of_thread());
  wait_for(job, *served);
  count_blocking(job, served->called(), begin);
  tell_outcome(exchange.asked, *served);
  return served->status().is_ok() ? MPI_SUCCESS : comm->raise(job.code_of(served->status()));
}

int begin_exchange(Job& job, const Collective& call, const std::shared_ptr<mpi::CommInfo>& comm,
                   ProgramExchange exchange, MPI_Request* request) {
  if (is_lone(*comm)) {
    const int code = exchange_alone(job, *comm, exchange);
    if (code != MPI_SUCCESS) return code;
    return open_finished(request);
  }
  if (needs_preparation(job) && !job.teams.is_settled(*comm)) {
    trace::say("rank " + std::to_string(job.rank) +
               ": under this MPI an exchange that does not block needs a blocking one before, or "
               "mpress at work when the neighbourhood is made");
    return comm->raise(MPI_ERR_OTHER);
  }
  exchange.is_direct = !job.collectives.immediate;
  Team& team = *job.teams.of(comm);
  auto begun = std::make_shared<ImmediateExchange>(
      job, call, comm, team, std::make_unique<KeptExchange>(job, std::move(exchange)));
  begun->start(request);
  job.requests.insert(*request, std::move(begun));
  return MPI_SUCCESS;
}

int make_exchange(Job& job, const Collective& call, const std::shared_ptr<mpi::CommInfo>& comm,
                  ProgramExchange exchange, MPI_Request* request) {
  std::shared_ptr<Request> made;
  if (is_lone(*comm)) {
    made = std::make_shared<LoneExchange>(job, comm, std::move(exchange));
  } else {
    Team& team = *job.teams.of_blocking(comm);
    Turn turn(job, team, Form::persistent, exchange);
    wait_for(job, turn, team);
    if (turn.code() != MPI_SUCCESS) return comm->raise(turn.code());
    exchange.is_direct = !job.collectives.immediate;
    made = std::make_shared<PersistentExchange>(
        job, call, comm, team, std::make_unique<KeptExchange>(job, std::move(exchange)),
        turn.served());
  }
  // One that can be told from all others, and matches nothing.
  const int code = mpi::calls().Recv_init(nullptr, 0, MPI_BYTE, 0, 0, mpi::self_comm(), request);
  if (code != MPI_SUCCESS) return comm->raise(code);
  job.requests.insert(*request, std::move(made));
  return MPI_SUCCESS;
}

}  // namespace mpress::engine
