#include "mpi/staging/staged_call.hpp"

#include <utility>

#include "mpi/job/job.hpp"
#include "mpi/requests/request.hpp"

namespace mpress::engine {

namespace {

/// MPI's local copies are between memory of one kind: both buffers get one, or neither.
bool needs_bounce_buffers(Job& job, const Operands& operands) {
  return BounceBuffer::is_needed(job, operands.send) ||
         BounceBuffer::is_needed(job, operands.receive);
}

}  // namespace

int StagedCall::open(Job& job, const Operands& operands) {
  return operands.known && needs_bounce_buffers(job, operands) ? open_all(job, operands)
                                                               : MPI_SUCCESS;
}

int StagedCall::open_all(Job& job, const Operands& operands) {
  if (!operands.known) return MPI_SUCCESS;
  const bool send = BounceBuffer::is_on_device(job, operands.send);
  const bool receive = BounceBuffer::is_on_device(job, operands.receive);
  if (!send && !receive) return MPI_SUCCESS;
  comm_ = mpi::comm_info(operands.comm);
  return comm_ ? raised(make(job, operands, send, receive)) : MPI_SUCCESS;
}

int StagedCall::prepare(Job& job, const Operands& operands) {
  const int code = make(job, operands, BounceBuffer::is_on_device(job, operands.send),
                        BounceBuffer::is_on_device(job, operands.receive));
  return code == MPI_SUCCESS ? bring(job) : code;
}

int StagedCall::make(Job& job, const Operands& operands, bool send, bool receive) {
  int code = send ? send_.open(job, operands.send, operands.receive.buffer) : MPI_SUCCESS;
  if (code == MPI_SUCCESS && receive) {
    code = receive_.open(job, operands.receive, replaced(operands.send.buffer));
  }
  return code;
}

int StagedCall::fetch(Job& job) { return raised(bring(job)); }

int StagedCall::fetch_behind_defaults(Job& job) {
  int code = send_ ? send_.await_defaults(job) : MPI_SUCCESS;
  if (code == MPI_SUCCESS && receive_) code = receive_.await_defaults(job);
  return raised(code == MPI_SUCCESS ? bring(job) : code);
}

int StagedCall::bring(Job& job) {
  delivered_ = false;
  int code = send_ ? send_.fetch(job) : MPI_SUCCESS;
  if (code == MPI_SUCCESS && receive_) code = receive_.fetch(job);
  return code;
}

int StagedCall::deliver(Job& job) {
  if (!std::exchange(delivered_, true)) {
    delivered_code_ = receive_ ? receive_.deliver(job) : MPI_SUCCESS;
  }
  return delivered_code_;
}

namespace {

class StagedRequest final : public Request {
 public:
  StagedRequest(std::unique_ptr<StagedCall> call, bool is_persistent)
      : Request(is_persistent), call_(std::move(call)) {}

  int start(Job& job, MPI_Request* request) override {
    const int code = call_->fetch_behind_defaults(job);
    if (code != MPI_SUCCESS) return code;
    set_active(true);
    return mpi::calls().Start(request);
  }

  bool settle(Job& job, MPI_Request request) override {
    if (!Request::settle(job, request)) return false;
    call_->deliver(job);
    return true;
  }

  Ending finish(Job& job, MPI_Status&) override {
    const int code = call_->deliver(job);
    return {code, code == MPI_SUCCESS ? nullptr : call_->comm()};
  }

 private:
  const std::unique_ptr<StagedCall> call_;
};

}  // namespace

int complete_later(Job& job, std::unique_ptr<StagedCall> call, MPI_Request request) {
  // What is complete at once may share its request with others.
  int complete = 0;
  mpi::calls().Request_get_status(request, &complete, MPI_STATUS_IGNORE);
  if (complete) return call->conclude(job);
  job.requests.insert(request, std::make_shared<StagedRequest>(std::move(call), false));
  return MPI_SUCCESS;
}

void keep_persistent(Job& job, std::unique_ptr<StagedCall> call, MPI_Request request) {
  job.requests.insert(request, std::make_shared<StagedRequest>(std::move(call), true));
}

}  // namespace mpress::engine
