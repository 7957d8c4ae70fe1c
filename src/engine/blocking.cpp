#include "engine/blocking.hpp"

#include <cstring>

#include "engine/job.hpp"

namespace mpress::engine {
namespace {

using trace::Op;

/// The program's status, or our own where it ignores it: delivering needs one.
class StatusOf {
 public:
  explicit StatusOf(MPI_Status* given) : used_(given == MPI_STATUS_IGNORE ? &own_ : given) {}
  StatusOf(const StatusOf&) = delete;
  StatusOf& operator=(const StatusOf&) = delete;
  MPI_Status* operator->() const { return used_; }
  operator MPI_Status*() const { return used_; }
  MPI_Status& operator*() const { return *used_; }

 private:
  MPI_Status own_;
  MPI_Status* used_;
};

/// Delivers what a blocking call received, and raises what goes wrong.
int deliver(Job& job, Receive& receive, MPI_Status& status, std::uint64_t begin_ns) {
  receive.waited(trace::now_ns() - begin_ns);
  const int code = receive.deliver(job, status);
  return code == MPI_SUCCESS ? code : receive.comm()->raise(code);
}

/// A receive whose message a probe has already taken from MPI. True where it was, and `code` is
/// what came of it.
bool take_probed(Job& job, Op op, const ReceiveArguments& arguments, int source, int tag,
                 MPI_Status* status, int& code) {
  const auto probed = job.probed.take(arguments.comm, source, tag);
  if (!probed) return false;
  code = probed->deliver(job, op, arguments, status);
  if (code != MPI_SUCCESS) probed->comm->raise(code);
  return true;
}

/// Where threads may probe while others receive, receives are posted under the queue's lock and
/// waited for outside it; elsewhere one call does both.
bool must_post(const Job& job) { return job.threaded || !job.probed.empty(); }

int post(const Receive& receive, int source, int tag, MPI_Comm comm, MPI_Request* request) {
  return link::mpi().Irecv(receive.buffer(), receive.count(), receive.type(), source, tag, comm,
                           request);
}

}  // namespace

int receive(Job& job, const ReceiveArguments& arguments, int source, int tag, MPI_Status* given) {
  const link::MpiCalls& mpi = link::mpi();
  Receive receive;
  const bool watched = receive.watch(job, Op::recv, arguments);
  if (!watched && !must_post(job)) {
    return mpi.Recv(arguments.buffer, arguments.count, arguments.type, source, tag,
                    arguments.comm, given);
  }
  const StatusOf status(given);
  const std::uint64_t begin = trace::now_ns();
  int code = MPI_SUCCESS;
  if (must_post(job)) {
    MPI_Request request;
    {
      const auto posting = job.probed.posting();
      if (take_probed(job, Op::recv, arguments, source, tag, status, code)) return code;
      code = post(receive, source, tag, arguments.comm, &request);
    }
    if (code == MPI_SUCCESS) code = mpi.Wait(&request, status);
  } else {
    code = mpi.Recv(receive.buffer(), receive.count(), receive.type(), source, tag,
                    arguments.comm, status);
  }
  return code == MPI_SUCCESS && watched ? deliver(job, receive, *status, begin) : code;
}

int exchange(Job& job, const SendArguments& send, int send_tag, const ReceiveArguments& arguments,
             int source, int receive_tag, MPI_Status* given) {
  const link::MpiCalls& mpi = link::mpi();
  const Outgoing out = prepare_send(job, Op::sendrecv, send);
  if (out.error != MPI_SUCCESS) return out.error;
  const SendArguments& use = out.arguments;
  Receive receive;
  const bool watched = receive.watch(job, Op::sendrecv, arguments);
  const StatusOf status(given);
  const std::uint64_t begin = trace::now_ns();
  int code = MPI_SUCCESS;
  if (must_post(job)) {
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    {
      const auto posting = job.probed.posting();
      if (take_probed(job, Op::sendrecv, arguments, source, receive_tag, status, code)) {
        const int sent = mpi.Send(use.buffer, use.count, use.type, use.destination, send_tag,
                                  use.comm);
        return code == MPI_SUCCESS ? sent : code;
      }
      code = post(receive, source, receive_tag, arguments.comm, &requests[0]);
    }
    if (code != MPI_SUCCESS) return code;
    code = mpi.Send(use.buffer, use.count, use.type, use.destination, send_tag, use.comm);
    const int received = mpi.Wait(&requests[0], status);
    if (code == MPI_SUCCESS) code = received;
  } else {
    code = mpi.Sendrecv(use.buffer, use.count, use.type, use.destination, send_tag,
                        receive.buffer(), receive.count(), receive.type(), source, receive_tag,
                        arguments.comm, status);
  }
  return code == MPI_SUCCESS && watched ? deliver(job, receive, *status, begin) : code;
}

int exchange_in_place(Job& job, const SendArguments& send, int send_tag,
                      const ReceiveArguments& arguments, int source, int receive_tag,
                      MPI_Status* given) {
  const std::shared_ptr<TypeInfo> type = type_info(send.type);
  const std::size_t bytes =
      type && send.count > 0 ? static_cast<std::size_t>(send.count) * type->size : 0;
  if (bytes == 0 || send.destination == MPI_PROC_NULL || source == MPI_PROC_NULL) {
    return link::mpi().Sendrecv_replace(arguments.buffer, arguments.count, arguments.type,
                                        send.destination, send_tag, source, receive_tag,
                                        arguments.comm, given);
  }
  // What is sent makes way for what is received, packed: then it is an exchange like any other.
  memory::Buffer packed = pack_elements(job, send, bytes);
  if (!packed) {
    const std::shared_ptr<CommInfo> comm = comm_info(send.comm);
    return comm ? comm->raise(MPI_ERR_NO_MEM) : MPI_ERR_COMM;
  }
  SendArguments aside = send;
  aside.buffer = packed.data();
  if (!type->contiguous) {
    const std::size_t unit = type->element ? element_size(*type->element) : 1;
    aside.type = !type->element                        ? MPI_PACKED
                 : *type->element == ElementType::f32 ? MPI_FLOAT
                                                       : MPI_DOUBLE;
    aside.count = static_cast<int>(bytes / unit);
  }
  return exchange(job, aside, send_tag, arguments, source, receive_tag, given);
}

}  // namespace mpress::engine
