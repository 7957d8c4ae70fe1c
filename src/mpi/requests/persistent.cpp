#include "mpi/requests/persistent.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/followed_stream.hpp"
#include "core/staging.hpp"
#include "mpi/calls/counted.hpp"
#include "mpi/job/job.hpp"
#include "mpi/messages/receive_request.hpp"
#include "mpi/peek.hpp"
#include "trace/message.hpp"

namespace mpress::engine {
namespace {

class PersistentSend final : public Request {
 public:
  PersistentSend(const SendArguments& arguments, const mpi::TypeInfo& type, bool buffer_stays,
                 int tag, ImmediateSend send, std::shared_ptr<mpi::CommInfo> comm)
      : Request(true),
        type_(arguments.type, type.is_predefined),
        arguments_(with_type(arguments, type_.get())),
        call_{trace::Op::start, Family::persistent, buffer_stays},
        tag_(tag),
        send_(send),
        comm_(std::move(comm)) {}

  int start(Job& job, MPI_Request* request) override;
  bool advance() override { return operation_->advance(); }
  bool needs_host() const override { return operation_->needs_host(); }
  bool may_be_late(const Job&) const override { return operation_ != nullptr; }
  bool only_mpress_completes() const override { return operation_ != nullptr; }
  bool is_offered() const override { return operation_ && operation_->is_offered(); }
  bool must_end() const override { return operation_ && operation_->must_end(); }
  void abandon() override {
    if (operation_) operation_->abandon();
  }
  void await(bool alone) override {
    if (operation_) operation_->await(alone);
  }
  int cancel(MPI_Request* request) override {
    return operation_ ? operation_->cancel(request) : Request::cancel(request);
  }
  bool outlives_its_request() const override { return operation_ || frame_; }

  Ending finish(Job& job, MPI_Status& status) override {
    return operation_ ? operation_->finish(job, status)
           : frame_   ? frame_->finish(job, status)
                      : Ending{};
  }
  Ending look(Job&, MPI_Status&) override { return {}; }

  void retire() override {
    operation_.reset();
    frame_.reset();
  }

 private:
  static SendArguments with_type(SendArguments arguments, MPI_Datatype type) {
    arguments.type = type;
    return arguments;
  }
  int start_raw(Job& job, MPI_Request* request);

  const mpi::KeptType type_;  ///< the program may free its own before the last start
  const SendArguments arguments_;
  const SendCall call_;
  const int tag_;
  const ImmediateSend send_;                   ///< in the mode of the persistent send
  const std::shared_ptr<mpi::CommInfo> comm_;  ///< its handle may be freed, and given to another
  std::shared_ptr<SendOperation> operation_;   ///< what was started, with data that follows
  std::shared_ptr<FrameSend> frame_;           ///< or in one piece
};

int PersistentSend::start_raw(Job& job, MPI_Request* request) {
  // The request still knows the communicator, but nobody else can send on it.
  const std::shared_ptr<mpi::TypeInfo> type = mpi::type_info(arguments_.type);
  if (type && !job.gpu_aware && device_of(job, arguments_.buffer, *type) != gpu::host) {
    trace::say("rank " + std::to_string(job.rank) +
               ": a persistent send from device memory outlives its communicator");
    return comm_->raise(MPI_ERR_COMM);
  }
  set_active(true);
  return mpi::calls().Start(request);
}

int PersistentSend::start(Job& job, MPI_Request* request) {
  if (arguments_.outcome) *arguments_.outcome = {};
  if (comm_->freed) return start_raw(job, request);
  Outgoing out = prepare_send(job, call_, arguments_);
  if (out.error != MPI_SUCCESS) return out.error;
  set_active(true);
  if (out.is_raw()) return mpi::calls().Start(request);
  Started started;
  const int code = start_send(job, std::move(out), send_, tag_, &stand_in_, &started);
  operation_ = std::move(started.operation);
  frame_ = std::move(started.frame);
  if (operation_) {
    operation_->open_request(&stand_in_);
    renew();
    follow(job);
  }
  return code;
}

class PersistentReceive final : public ReceiveRequest {
 public:
  PersistentReceive(Job& job, int source, int tag)
      : ReceiveRequest(job, true), source_(source), tag_(tag) {}

  int start(Job& job, MPI_Request* request) override;
  bool may_be_late(const Job&) const override {
    return is_open_ || (!replaced() && expects_data());
  }
  bool advance() override;
  bool settle(Job& job, MPI_Request request) override;

 private:
  const int source_;
  const int tag_;
};

/// A receive that contests it meanwhile may follow it once it is active.
int PersistentReceive::start(Job& job, MPI_Request* request) {
  receive.renew();
  renew();
  begin(*request);
  if (job.pacer.active()) receive.core().travels_from(trace::now_ns());
  const auto posting = job.probed.posting();
  const std::unique_ptr<ProbedMessage> probed = job.probed.take(receive.comm(), source_, tag_);
  if (!probed) {
    const int started = mpi::calls().Start(request);
    begin(*request);  // see start() below
    set_active(true);
    return started;
  }
  set_active(true);
  const int code = probed->deliver_later(*this, &stand_in_);
  if (is_open_) follow(job);
  return code;
}

bool PersistentReceive::settle(Job& job, MPI_Request) {
  if (receive.core().result()) return true;
  if (!is_over() && !advance()) {
    follow(job);
    return false;
  }
  if (!receive.core().result()) receive.deliver(open_.status());
  return true;
}

/// MPICH ends a persistent receive that MPI_Request_get_status finds complete, so those cannot be
/// looked at: MPI completes them, and a stand-in takes over.
bool PersistentReceive::advance() {
  if (is_open_) return advance_receive();
  const BufferLook look(*this);
  int arrived = 0;
  MPI_Status status;
  bool is_raised = false;
  MPI_Request request = request_;
  const int result = mpi::test(&request, &arrived, &status, &is_raised);
  request_ = request;
  if (result == MPI_SUCCESS && !arrived) return false;
  if (open_request(status, &stand_in_) != MPI_SUCCESS) {
    mpi::fatal("MPI refused a generalized request");
  }
  if (result == MPI_SUCCESS && receive.collects(status)) return advance_receive();
  if (result != MPI_SUCCESS) receive.fail(result, is_raised);
  end_open();
  return true;
}

}  // namespace

void watch_persistent_send(Job& job, const SendArguments& arguments, bool buffer_stays, int tag,
                           ImmediateSend start_send, MPI_Request request) {
  const std::shared_ptr<mpi::TypeInfo> type = mpi::type_info(arguments.type);
  if (!type || arguments.destination < 0) return;
  std::shared_ptr<mpi::CommInfo> comm = mpi::comm_info(arguments.comm);
  if (!comm) return;
  job.requests.insert(request, std::make_shared<PersistentSend>(arguments, *type, buffer_stays, tag,
                                                                start_send, std::move(comm)));
}

int receive_init(Job& job, const ReceiveArguments& arguments, int source, int tag,
                 MPI_Request* request) {
  auto entry = std::make_shared<PersistentReceive>(job, source, tag);
  MpiReceive& receive = entry->receive;
  const bool known =
      receive.watch(trace::Op::start, arguments) || receive.describe(trace::Op::start, arguments);
  entry->claim_buffer();
  const ReceiveArguments posted = receive.posted();
  const int code = mpi::counted::Recv_init(posted.buffer, posted.count, posted.type, source, tag,
                                           posted.comm, request);
  if (code != MPI_SUCCESS || source == MPI_PROC_NULL || !known) return code;
  receive.outlive_call();
  job.requests.insert(*request, std::move(entry));
  return code;
}

namespace {

/// Takes a request out of the tables while MPI starts it. Open MPI starts another request where it
/// still sends what the last start has buffered: it changes the program's handle, and may give the
/// old one to another thread before the call returns.
class RestartedRequest {
 public:
  RestartedRequest(Job& job, MPI_Request* request) : job_(job), request_(request) {
    if (Request* const found = job.requests.find(*request)) entry_ = job.requests.remove(found);
    streams_ = job.start_streams.take(*request);
  }
  RestartedRequest(const RestartedRequest&) = delete;
  RestartedRequest& operator=(const RestartedRequest&) = delete;
  ~RestartedRequest() {
    job_.start_streams.put(*request_, std::move(streams_));
    if (entry_) job_.requests.insert(*request_, std::move(entry_));
  }

  Request* entry() const { return entry_.get(); }
  bool follows_streams() const { return streams_.has_value(); }

 private:
  Job& job_;
  MPI_Request* const request_;
  std::shared_ptr<Request> entry_;
  std::optional<StartStreams::Noted> streams_;
};

}  // namespace

int start(Job& job, MPI_Request* request) {
  const RestartedRequest restarted(job, request);
  Request* const entry = restarted.entry();
  const FollowedStream scope(restarted.follows_streams());
  return entry ? entry->start(job, request) : mpi::calls().Start(request);
}

}  // namespace mpress::engine
