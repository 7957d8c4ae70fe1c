#include "engine/request/persistent.hpp"

#include <memory>
#include <string>
#include <utility>

#include "engine/job.hpp"
#include "engine/request/finished_request.hpp"
#include "mpi/counted.hpp"
#include "trace/message.hpp"

namespace mpress::engine {
namespace {

int start_one_send(Job& job, Pending& pending, MPI_Request* request) {
  if (pending.comm->freed) {  // the request still knows it, but nobody else can send on it
    const std::shared_ptr<mpi::TypeInfo> type = mpi::type_info(pending.send.type);
    if (type && !job.gpu_aware && device_of(job, pending.send.buffer, *type) != gpu::host) {
      trace::say("rank " + std::to_string(job.rank) +
                 ": a persistent send from device memory outlives its communicator");
      return pending.comm->raise(MPI_ERR_COMM);
    }
    pending.active = true;
    return mpi::calls().Start(request);
  }
  Outgoing out = prepare_send(job, trace::Op::start, pending.send);
  if (out.error != MPI_SUCCESS) return out.error;
  pending.active = true;
  pending.chunked_message = out.chunks ? out.chunks->message() : no_message;
  if (!out.frame) return mpi::calls().Start(request);
  pending.frame = std::move(out.frame);
  const int code = start_send(job, out, pending.start_send, pending.tag, &pending.stand_in);
  return code == MPI_SUCCESS ? out.error : code;
}

int start_one_receive(Job& job, Pending& pending, MPI_Request* request) {
  pending.active = true;
  pending.receive->renew();
  if (job.pacer.active()) pending.receive->travels_when_posted();
  const auto posting = job.probed.posting();
  const std::unique_ptr<ProbedMessage> probed =
      job.probed.take(pending.comm, pending.source, pending.tag);
  if (!probed) return mpi::calls().Start(request);
  return probed->deliver_later(job, pending, &pending.stand_in);
}

int start_one_staged(Job& job, Pending& pending, MPI_Request* request) {
  const int code = pending.staged->fetch(job);
  if (code != MPI_SUCCESS) return code;
  pending.active = true;
  return mpi::calls().Start(request);
}

}  // namespace

void watch_persistent_send(Job& job, const SendArguments& arguments, int tag,
                           ImmediateSend start_send, MPI_Request request) {
  const std::shared_ptr<mpi::TypeInfo> type = mpi::type_info(arguments.type);
  if (!type || arguments.count <= 0 || arguments.destination < 0) return;
  if (!type->element && device_of(job, arguments.buffer, *type) == gpu::host) return;
  auto pending = std::make_unique<Pending>();
  pending->comm = mpi::comm_info(arguments.comm);
  if (!pending->comm) return;
  pending->persistent = true;
  pending->active = false;
  pending->send = arguments;
  pending->start_send = start_send;
  pending->tag = tag;
  job.requests.insert(request, std::move(pending));
}

int receive_init(Job& job, const ReceiveArguments& arguments, int source, int tag,
                 MPI_Request* request) {
  auto pending = std::make_unique<Pending>();
  Receive& receive = pending->receive.emplace();
  const bool known = receive.watch(job, trace::Op::start, arguments) ||
                     receive.describe(job, trace::Op::start, arguments);
  const int code = mpi::counted::Recv_init(receive.buffer(), receive.count(), receive.type(),
                                           source, tag, arguments.comm, request);
  if (code != MPI_SUCCESS || source == MPI_PROC_NULL || !known) return code;
  pending->persistent = true;
  pending->active = false;
  pending->comm = receive.comm();
  pending->source = source;
  pending->tag = tag;
  job.requests.insert(*request, std::move(pending));
  return code;
}

int start(Job& job, MPI_Request* request) {
  Pending* pending = job.requests.find(*request);
  if (!pending) return mpi::calls().Start(request);
  if (pending->staged) return start_one_staged(job, *pending, request);
  return pending->receive ? start_one_receive(job, *pending, request)
                          : start_one_send(job, *pending, request);
}

}  // namespace mpress::engine
