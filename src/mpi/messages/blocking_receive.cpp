#include "mpi/messages/blocking_receive.hpp"

namespace mpress::engine {

int deliver_probed(Job& job, const ProbedMessage& probed, trace::Op op,
                   const ReceiveArguments& arguments, MPI_Status* status) {
  const int code = probed.deliver(job, op, arguments, status);
  return code == MPI_SUCCESS ? code : probed.comm->raise(code);
}

int end_receive(MpiReceive& receive, bool watched, const StatusOf& status, std::uint64_t begin_ns,
                int code) {
  if (code != MPI_SUCCESS || !watched || !status.has_answer()) return code;
  receive.core().waited_since(begin_ns);
  const int delivered = receive.deliver(*status);
  return delivered == MPI_SUCCESS ? code : receive.comm()->raise(delivered);
}

std::unique_ptr<ProbedMessage> take_or_post(Job& job, const ReceiveArguments& posted,
                                            const MessageSource& from, MPI_Request* request,
                                            int& code) {
  const auto posting = job.probed.posting();
  auto probed = job.probed.take(posted.comm, from.peer, from.tag);
  if (!probed) code = post(posted, from, request);
  return probed;
}

}  // namespace mpress::engine
