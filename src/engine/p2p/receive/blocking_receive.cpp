#include "engine/p2p/receive/blocking_receive.hpp"

#include <algorithm>

#include "gpu/loaded_gpu.hpp"

namespace mpress::engine {
namespace {

/// A message was none of mpress's, and MPI put it where the program wants it: the next ones like it
/// are looked at only where they may be frames by their size, and so is where they lie.
void let_stand(const Job& job, const Standing::Kind& kind, const Receive& receive) {
  trace::Row* const row = receive.row_of_raw();
  if (!row || job.pacer.active() || trace::timeline.is_on()) return;
  // Those before it, which were not timed, are taken to have waited as long, if there was time.
  const std::uint64_t end = receive.waited_until_ns();
  const Standing::Uses uses = Standing::take_uses(kind);
  const std::uint64_t begin = end - receive.waited_ns();
  trace::add(row->wait_ns, std::min(uses.count * receive.waited_ns(),
                                    uses.count > 0 ? begin - uses.since_ns : 0));
  if (Standing::is_decided_anew(kind)) return;
  const bool on_host_alone = !gpu::in_use();
  if (!on_host_alone && !job.raw_is_mpis) return;
  Standing::keep(kind, {Standing::some, end, row, on_host_alone}, Standing::now());
}

/// Delivers what a blocking call received, and raises what goes wrong.
int deliver(Job& job, Receive& receive, MPI_Status& status, std::uint64_t begin_ns) {
  receive.waited_since(begin_ns);
  const int code = receive.deliver(job, status);
  return code == MPI_SUCCESS ? code : receive.comm()->raise(code);
}

}  // namespace

int deliver_probed(Job& job, const ProbedMessage& probed, trace::Op op,
                   const ReceiveArguments& arguments, MPI_Status* status) {
  const int code = probed.deliver(job, op, arguments, status);
  return code == MPI_SUCCESS ? code : probed.comm->raise(code);
}

int end_receive(Job& job, Receive& receive, bool watched, const std::optional<Standing::Kind>& kind,
                const StatusOf& status, std::uint64_t begin_ns, int code) {
  if (code != MPI_SUCCESS || !watched || !status.has_answer()) return code;
  code = deliver(job, receive, *status, begin_ns);
  if (kind && code == MPI_SUCCESS) let_stand(job, *kind, receive);
  return code;
}

std::unique_ptr<ProbedMessage> take_or_post(Job& job, const Receive& receive, const Envelope& from,
                                            MPI_Comm comm, MPI_Request* request, int& code) {
  const auto posting = job.probed.posting();
  auto probed = job.probed.take(comm, from.peer, from.tag);
  if (!probed) code = post(receive, from, comm, request);
  return probed;
}

}  // namespace mpress::engine
