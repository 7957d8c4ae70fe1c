#include "engine/coll/collective.hpp"

#include <utility>

#include "engine/coll/served_call.hpp"
#include "engine/job.hpp"
#include "engine/request/finished_request.hpp"
#include "engine/request/request.hpp"
#include "mpi/peek.hpp"
#include "mpi/self_comm.hpp"

namespace mpress::engine {
namespace {

using Server = Routing::Server;

void wait_for(Job& job, Routing& routing, Context& context) {
  job.progress.wait_until([&] { return routing.advance(); });
  routing.pass();
  context.settle();
}

/// Of what outlives the call that began it.
class Hold {
 public:
  explicit Hold(Context& context) : context_(context) { context_.hold(); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold() { context_.let_go(); }

 private:
  Context& context_;
};

/// A request whose call mpress completes. One that is over before the program looks stays in the
/// table, with what went wrong.
class CollectiveRequest : public Request {
 public:
  CollectiveRequest(const Collective& call, std::shared_ptr<mpi::CommInfo> comm, Context& context,
                    std::unique_ptr<KeptCall> kept, bool is_persistent)
      : Request(is_persistent),
        call_(call),
        comm_(std::move(comm)),
        context_(context),
        hold_(context),
        kept_(std::move(kept)) {}

  bool advance() final {
    if (!proceed()) return false;
    is_ended_.store(true, std::memory_order_relaxed);
    open_.finish();
    return true;
  }
  bool may_run_in_hook() const final { return true; }
  bool may_be_late(const Job&) const final { return !is_ended_.load(std::memory_order_relaxed); }
  bool only_mpress_completes() const final { return true; }
  bool must_end() const final { return true; }
  void await(bool alone) final { is_awaited_.store(alone, std::memory_order_relaxed); }
  Ending finish(Job&, MPI_Status&) final {
    const int code = this->code();
    return {code, code == MPI_SUCCESS || is_raised() ? nullptr : comm_};
  }

 protected:
  /// Gives the program, or its persistent request, what completes when this is over.
  void open(MPI_Request* request) { open_.open_empty(request); }

  bool proceed_with(CollectiveOperation& served) const {
    served.await(is_awaited_.load(std::memory_order_relaxed));
    return served.advance();
  }

  /// Begins, and drives home what needs this process: the program may compute for long now.
  void begin(Job& job) {
    is_ended_.store(false, std::memory_order_relaxed);
    bool is_over = advance();
    while (!is_over && !job.progress.is_threaded() && needs_host()) is_over = advance();
    if (!is_over) follow(job);
  }

  const Collective call_;
  const std::shared_ptr<mpi::CommInfo> comm_;  ///< before what refers to its context
  Context& context_;
  const Hold hold_;
  const std::unique_ptr<KeptCall> kept_;

 private:
  virtual bool proceed() = 0;
  virtual int code() const = 0;
  virtual bool is_raised() const { return false; }

  OpenRequest open_;
  std::atomic<bool> is_ended_{false};
  std::atomic<bool> is_awaited_{false};  ///< asked while another thread lets it proceed
};

/// A non-blocking call: first it is decided who serves it.
class ImmediateCall final : public CollectiveRequest {
 public:
  ImmediateCall(Job& job, const Collective& call, const Candidate& candidate, Context& context,
                std::unique_ptr<KeptCall> kept)
      : CollectiveRequest(call, candidate.comm, context, std::move(kept), false),
        job_(job),
        routing_(job, call_, Form::immediate, kept_->operands(), candidate, context) {}

  void start(MPI_Request* request) {
    open(request);
    begin(job_);
  }

  bool needs_host() const override { return served_ && served_->needs_host(); }

 private:
  bool proceed() override;
  void begin_by_mpi();
  int code() const override { return code_; }

  Job& job_;
  Routing routing_;
  bool is_begun_ = false;
  std::unique_ptr<CollectiveOperation> served_;
  StagedCall staged_;  ///< where MPI serves it
  MPI_Request request_ = MPI_REQUEST_NULL;
  int code_ = MPI_SUCCESS;
};

bool ImmediateCall::proceed() {
  if (!is_begun_) {
    if (!routing_.advance()) return false;
    is_begun_ = true;
    switch (routing_.server()) {
      case Server::failed: code_ = MPI_ERR_OTHER; break;
      case Server::mpi: begin_by_mpi(); break;
      case Server::mpress:
        served_ =
            make_operation(job_, call_, kept_->operands(), *comm_, context_, routing_.served());
        served_->start();
    }
    routing_.pass();
  }
  if (served_) {
    if (!proceed_with(*served_)) return false;
    code_ = served_->code();
    return true;
  }
  if (request_ == MPI_REQUEST_NULL) return true;
  int is_complete = 0;
  const int code = mpi::test(&request_, &is_complete, MPI_STATUS_IGNORE);
  if (code == MPI_SUCCESS && !is_complete) return false;
  code_ = code == MPI_SUCCESS ? staged_.deliver(job_) : code;
  return true;
}

/// On the private communicator: the program may have made other calls on its own by now, and not
/// the same on all ranks.
void ImmediateCall::begin_by_mpi() {
  if (context_.comm() == MPI_COMM_NULL) {
    code_ = MPI_ERR_INTERN;
    return;
  }
  code_ = staged_.prepare(job_, kept_->operands());
  if (code_ == MPI_SUCCESS) code_ = kept_->begin(staged_, context_.comm(), &request_);
  if (code_ != MPI_SUCCESS) request_ = MPI_REQUEST_NULL;
}

/// A non-blocking call of which MPI moves all but the long pairs.
class PairwiseRequest final : public CollectiveRequest {
 public:
  PairwiseRequest(Job& job, const Collective& call, const Candidate& candidate, Context& context,
                  std::unique_ptr<KeptCall> kept, PairsToBegin found)
      : CollectiveRequest(call, candidate.comm, context, std::move(kept), false),
        job_(job),
        pairs_(std::move(found.pairs)),
        blocks_(job, call_, kept_->operands(), *comm_, context, found.served, &pairs_) {}

  int start(MPI_Request* request) {
    const int code = kept_->begin_rest(job_, staged_, pairs_, &rest_);
    if (code != MPI_SUCCESS) return code;
    open(request);
    blocks_.start();
    begin(job_);
    return MPI_SUCCESS;
  }

  bool needs_host() const override { return blocks_.needs_host(); }

 private:
  bool proceed() override {
    if (!has_blocks_) has_blocks_ = proceed_with(blocks_);
    if (rest_ != MPI_REQUEST_NULL) {
      int is_complete = 0;
      rest_code_ = mpi::test(&rest_, &is_complete, MPI_STATUS_IGNORE);
      if (rest_code_ != MPI_SUCCESS || is_complete) rest_ = MPI_REQUEST_NULL;
    }
    if (!has_blocks_ || rest_ != MPI_REQUEST_NULL) return false;
    code_ = blocks_.code();
    if (code_ == MPI_SUCCESS && rest_code_ == MPI_SUCCESS) code_ = staged_.deliver(job_);
    return true;
  }
  int code() const override { return is_raised() ? rest_code_ : code_; }
  bool is_raised() const override { return rest_code_ != MPI_SUCCESS; }

  Job& job_;
  const LongPairs pairs_;
  ServedCall blocks_;
  StagedCall staged_;  ///< MPI's half
  MPI_Request rest_ = MPI_REQUEST_NULL;
  int rest_code_ = MPI_SUCCESS;
  int code_ = MPI_SUCCESS;
  bool has_blocks_ = false;
};

/// A persistent call that mpress serves. The program's request is one of MPI's that never starts:
/// what completes is another in its place, at each start.
class PersistentCall final : public CollectiveRequest {
 public:
  PersistentCall(Job& job, const Collective& call, const Candidate& candidate, Context& context,
                 std::unique_ptr<KeptCall> kept, const Served& served)
      : CollectiveRequest(call, candidate.comm, context, std::move(kept), true),
        tag_(served.tag),
        served_(make_operation(job, call_, kept_->operands(), *comm_, context, served)) {
    context.order().take(tag_);
  }
  ~PersistentCall() override { context_.order().give(tag_); }

  int start(Job& job, MPI_Request*) override {
    set_active(true);
    renew();
    open(&stand_in_);
    served_->start();
    begin(job);
    return MPI_SUCCESS;
  }

  bool needs_host() const override { return served_->needs_host(); }

 private:
  bool proceed() override { return proceed_with(*served_); }
  int code() const override { return served_->code(); }

  const std::uint32_t tag_;
  const std::unique_ptr<CollectiveOperation> served_;
};

}  // namespace

std::optional<int> serve_collective(Job& job, const Collective& call, const Operands& operands,
                                    std::optional<PairwiseCall>& begun) {
  const Candidate candidate = look_at(job, call, Form::blocking, operands);
  if (!candidate.comm) return std::nullopt;
  Context& context = context_of(job, candidate, Form::blocking);
  Routing routing(job, call, Form::blocking, operands, candidate, context);
  wait_for(job, routing, context);
  if (routing.server() == Server::mpi) return std::nullopt;
  if (routing.server() == Server::both) {
    LongPairs pairs(job, context, operands);
    if (pairs.any()) {
      begun.emplace(job, call, operands, candidate.comm, context, routing.served(),
                    std::move(pairs));
    }
    return std::nullopt;
  }
  mpi::CommInfo& comm = *candidate.comm;
  if (routing.server() == Server::failed) return comm.raise(MPI_ERR_OTHER);
  const std::uint64_t begin = trace::now_ns();
  const auto served = make_operation(job, call, operands, comm, context, routing.served());
  served->start();
  wait_for(job, *served);
  count_blocking(job, served->called(), begin);
  return served->code() == MPI_SUCCESS ? MPI_SUCCESS : comm.raise(served->code());
}

int begin_collective(Job& job, const Collective& call, const Candidate& candidate,
                     std::unique_ptr<KeptCall> kept, MPI_Request* request) {
  Context& context = context_of(job, candidate, Form::immediate);
  auto begun = std::make_shared<ImmediateCall>(job, call, candidate, context, std::move(kept));
  begun->start(request);
  job.requests.insert(*request, std::move(begun));
  return MPI_SUCCESS;
}

std::optional<PairsToBegin> find_pairs(Job& job, const Collective& call, const Candidate& candidate,
                                       const Operands& operands) {
  Context& context = context_of(job, candidate, Form::immediate);
  Routing routing(job, call, Form::immediate, operands, candidate, context);
  wait_for(job, routing, context);  // for no rank: the context is settled
  if (routing.server() != Server::both) return std::nullopt;
  LongPairs pairs(job, context, operands);
  if (!pairs.any()) return std::nullopt;
  return PairsToBegin{std::move(pairs), routing.served()};
}

int begin_pairwise(Job& job, const Collective& call, const Candidate& candidate, PairsToBegin found,
                   std::unique_ptr<KeptCall> kept, MPI_Request* request) {
  Context& context = context_of(job, candidate, Form::immediate);
  auto begun = std::make_shared<PairwiseRequest>(job, call, candidate, context, std::move(kept),
                                                 std::move(found));
  const int code = begun->start(request);
  if (code == MPI_SUCCESS) job.requests.insert(*request, std::move(begun));
  return code;
}

std::optional<int> make_collective(Job& job, const Collective& call, const Candidate& candidate,
                                   std::unique_ptr<KeptCall> kept, MPI_Request* request) {
  Context& context = context_of(job, candidate, Form::persistent);
  Routing routing(job, call, Form::persistent, kept->operands(), candidate, context);
  wait_for(job, routing, context);
  if (routing.server() == Server::mpi) return std::nullopt;
  if (routing.server() == Server::failed) return candidate.comm->raise(MPI_ERR_OTHER);
  // One that can be told from all others, and matches nothing.
  const int code = mpi::calls().Recv_init(nullptr, 0, MPI_BYTE, 0, 0, mpi::self_comm(), request);
  if (code != MPI_SUCCESS) return candidate.comm->raise(code);
  job.requests.insert(
      *request, std::make_shared<PersistentCall>(job, call, candidate, context, std::move(kept),
                                                 routing.served()));
  return MPI_SUCCESS;
}

}  // namespace mpress::engine
