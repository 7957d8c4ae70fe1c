#include "mpi/messages/receive_calls.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <utility>

#include "mpi/messages/blocking_receive.hpp"
#include "mpi/messages/plain_receive.hpp"
#include "mpi/messages/receive_request.hpp"

namespace mpress::engine {

using trace::Op;

namespace {

/// Waits until MPI has received a message as `posted` says; then `code` is MPI's. False where a
/// probe had taken it, and it is delivered, or MPI refuses the call: then `code` is the call's.
bool await_from_mpi(Job& job, const ReceiveArguments& posted, const ReceiveArguments& arguments,
                    const MessageSource& from, const StatusOf& status, int& code) {
  if (must_post(job)) {
    MPI_Request request = MPI_REQUEST_NULL;
    const auto probed = take_or_post(job, posted, from, &request, code);
    if (probed) code = deliver_probed(job, *probed, Op::recv, arguments, status);
    if (request == MPI_REQUEST_NULL) return false;
    code = wait_for(job, &request, status);
  } else {
    code = mpi::counted::Recv(posted.buffer, posted.count, posted.type, from.peer, from.tag,
                              posted.comm, status);
  }
  job.links.channel.outbox.excuse();
  job.timings.collect();
  return true;
}

/// A receive that expects no frame.
int post_plain(Job& job, Op op, const PlainReceive& plain, const MessageSource& from,
               MPI_Request* request) {
  std::shared_ptr<mpi::CommInfo> comm;
  if (plain.capacity() >= wire::min_frame_bytes) comm = mpi::comm_info(plain.posted().comm);
  const int code = post(plain.posted(), from, request);
  if (code == MPI_SUCCESS && comm && !comm->no_frames) {
    job.requests.insert(*request, std::make_shared<PlainRequest>(plain, op, std::move(comm)));
  }
  return code;
}

}  // namespace

int receive(Job& job, const ReceiveArguments& arguments, const MessageSource& from,
            MPI_Status* given) {
  job.devices.look(arguments.buffer);
  if (!job.watches_receives() && !must_post(job) &&
      !MpiReceive::may_need_unpacking(job, arguments)) {
    return mpi::counted::Recv(arguments.buffer, arguments.count, arguments.type, from.peer,
                              from.tag, arguments.comm, given);
  }
  int code = MPI_SUCCESS;
  if (const auto plain = PlainReceive::of(job, arguments, true)) {
    const StatusOf status(given);
    const std::uint64_t begin = plain->begin();
    if (!await_from_mpi(job, plain->posted(), arguments, from, status, code)) return code;
    return plain->end(job, Op::recv, status, begin, code);
  }
  MpiReceive receive(job);
  const bool watched = receive.watch(Op::recv, arguments);
  if (watched) avoid_overlap(job, receive);
  if (!watched && !must_post(job)) {
    return mpi::counted::Recv(arguments.buffer, arguments.count, arguments.type, from.peer,
                              from.tag, arguments.comm, given);
  }
  const StatusOf status(given);
  const std::uint64_t begin = watched ? trace::now_ns() : 0;
  if (!await_from_mpi(job, receive.posted(), arguments, from, status, code)) return code;
  return end_receive(receive, watched, status, begin, code);
}

int receive_later(Job& job, Op op, const ReceiveArguments& arguments, const MessageSource& from,
                  MPI_Request* request) {
  job.devices.look(arguments.buffer);
  std::shared_ptr<ReceiveRequest> entry;
  bool watched = false;
  std::optional<PlainReceive> plain;
  if (job.watches_receives()) plain = PlainReceive::of(job, arguments, false);
  if (!plain && MpiReceive::may_need_watching(job, arguments)) {
    entry = std::make_shared<ReceiveRequest>(job);
    watched = entry->receive.watch(op, arguments);
    if (watched) entry->claim_buffer();
    if (job.pacer.active()) entry->receive.core().travels_from(trace::now_ns());
  }
  std::shared_lock<std::shared_mutex> posting;
  if (job.threaded) posting = job.probed.posting();
  if (const auto probed = job.probed.take(arguments.comm, from.peer, from.tag)) {
    if (!watched) {
      entry = std::make_shared<ReceiveRequest>(job);
      entry->receive.describe(op, arguments);
    }
    const int code = probed->deliver_later(*entry, request);
    if (entry->must_be_kept()) file(job, *request, std::move(entry));
    return code;
  }
  if (plain) return post_plain(job, op, *plain, from, request);
  if (!watched) return post(arguments, from, request);
  const int code = post(entry->receive.posted(), from, request);
  if (code == MPI_SUCCESS) file(job, *request, std::move(entry));
  return code;
}

int receive_matched(Job& job, const ReceiveArguments& arguments, MPI_Message* message,
                    MPI_Status* given) {
  MpiReceive receive(job);
  const bool watched = receive.watch_matched(Op::mrecv, arguments);
  const ReceiveArguments posted = receive.posted();
  const StatusOf status(given);
  const int code = mpi::counted::Mrecv(posted.buffer, posted.count, posted.type, message,
                                       watched ? status : given);
  if (code != MPI_SUCCESS || !watched || !status.has_answer()) return code;
  const int delivered = receive.deliver(*status);
  return delivered == MPI_SUCCESS ? code : receive.comm()->raise(delivered);
}

int receive_matched_later(Job& job, const ReceiveArguments& arguments, MPI_Message* message,
                          MPI_Request* request) {
  auto entry = std::make_shared<ReceiveRequest>(job);
  const bool watched = entry->receive.watch_matched(Op::imrecv, arguments);
  const ReceiveArguments posted = entry->receive.posted();
  const int code = mpi::counted::Imrecv(posted.buffer, posted.count, posted.type, message, request);
  if (code == MPI_SUCCESS && watched) file(job, *request, std::move(entry));
  return code;
}

}  // namespace mpress::engine
