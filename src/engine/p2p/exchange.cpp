#include "engine/p2p/exchange.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <utility>

#include "engine/job.hpp"
#include "engine/p2p/receive_request.hpp"
#include "engine/p2p/standing.hpp"
#include "engine/request/finished_request.hpp"
#include "gpu/loaded_gpu.hpp"
#include "mpi/counted.hpp"
#include "mpi/tags.hpp"

namespace mpress::engine {
namespace {

using mpi::counted::Side;
using trace::Op;

/// The program's status, or our own where it ignores it: delivering needs one. Tells whether a call
/// of MPI's received: MPICH's may return success, and leave the status as it was, once a handler of
/// the program's was called.
class StatusOf {
 public:
  explicit StatusOf(MPI_Status* given)
      : used_(given == MPI_STATUS_IGNORE ? &own_ : given),
        source_before_(std::exchange(used_->MPI_SOURCE, nobody)) {}
  StatusOf(const StatusOf&) = delete;
  StatusOf& operator=(const StatusOf&) = delete;
  ~StatusOf() {
    if (!has_answer()) used_->MPI_SOURCE = source_before_;
  }
  operator MPI_Status*() const { return used_; }
  MPI_Status& operator*() const { return *used_; }

  bool has_answer() const { return used_->MPI_SOURCE != nobody; }

 private:
  static constexpr int nobody = std::numeric_limits<int>::min();

  MPI_Status own_{};
  MPI_Status* used_;
  const int source_before_;
};

/// Delivers what a blocking call received, and raises what goes wrong.
int deliver(Job& job, Receive& receive, MPI_Status& status, std::uint64_t begin_ns) {
  receive.waited_since(begin_ns);
  const int code = receive.deliver(job, status);
  return code == MPI_SUCCESS ? code : receive.comm()->raise(code);
}

/// Receives a message that a probe has already taken from MPI, and raises what goes wrong.
int deliver_probed(Job& job, const ProbedMessage& probed, Op op, const ReceiveArguments& arguments,
                   MPI_Status* status) {
  const int code = probed.deliver(job, op, arguments, status);
  return code == MPI_SUCCESS ? code : probed.comm->raise(code);
}

/// Where threads may probe while others receive, receives are posted under the queue's lock and
/// waited for outside it; what is under way proceeds meanwhile. Elsewhere one call does both.
bool must_post(const Job& job) {
  return job.threaded || !job.probed.empty() || !job.progress.idle();
}

/// The kind of a blocking receive from one rank; nothing where it asks for anything of its own.
std::optional<Standing::Kind> kind_of(Op op, const ReceiveArguments& arguments,
                                      const Envelope& from) {
  if (from.peer < 0 || arguments.outcome) return std::nullopt;
  return Standing::Kind{
      trace::Direction::receive, op, from.peer, arguments.comm, arguments.type, arguments.count};
}

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

/// Where messages of this kind are counted, if one that MPI receives by a blocking call may be like
/// the last one; else null.
trace::Row* row_as_before(const Job& job, const std::optional<Standing::Kind>& kind) {
  if (!kind || !job.in_place.empty() || must_post(job)) return nullptr;
  const Standing* const standing = Standing::find(*kind);
  return standing ? &standing->row() : nullptr;
}

/// Receives such a message by `call`, which calls MPI with the status that it is given.
template <typename Call>
int receive_as_before(Job& job, const Standing::Kind& kind, trace::Row& row,
                      const ReceiveArguments& arguments, MPI_Status* given, Call call) {
  const StatusOf status(given);
  const int code = call(status);
  job.mpi_link.outbox.excuse();
  job.timings.collect(job);
  if (code != MPI_SUCCESS || !status.has_answer()) return code;
  const auto bytes = static_cast<std::size_t>(mpi::counted::bytes_of(*status));
  if (!wire::is_frame_size(bytes)) {
    trace::add_message(row, bytes, bytes);
    return MPI_SUCCESS;
  }
  Receive receive;
  if (!receive.look_at_received(job, kind.op, arguments)) return MPI_SUCCESS;
  const int delivered = receive.deliver(job, *status);
  if (!receive.row_of_raw()) Standing::interrupt(kind);
  return delivered == MPI_SUCCESS ? delivered : receive.comm()->raise(delivered);
}

int post(const Receive& receive, const Envelope& from, MPI_Comm comm, MPI_Request* request) {
  return mpi::counted::Irecv(receive.buffer(), receive.count(), receive.type(), from.peer, from.tag,
                             comm, request);
}

/// The message that a probe has already taken; or null, and a receive is posted, with `code`.
std::unique_ptr<ProbedMessage> take_or_post(Job& job, const Receive& receive, const Envelope& from,
                                            MPI_Comm comm, MPI_Request* request, int& code) {
  const auto posting = job.probed.posting();
  auto probed = job.probed.take(comm, from.peer, from.tag);
  if (!probed) code = post(receive, from, comm, request);
  return probed;
}

int send_in_one(Job& job, const Outgoing& out, int tag) {
  return send_now(job, out, mpi::counted::Send, mpi::counted::Isend, tag);
}

/// The receiving half of an exchange, which MPI has begun.
struct Reception {
  Receive& receive;
  MPI_Request request;
  const StatusOf& status;
  std::uint64_t begin_ns;
  bool watched;
  bool over = false;
  int code = MPI_SUCCESS;

  void end(Job& job, int received) {
    over = true;
    const bool has_come = received == MPI_SUCCESS && status.has_answer();
    code = has_come && watched ? deliver(job, receive, *status, begin_ns) : received;
  }
};

/// Sends the data of an exchange, and receives meanwhile: the other rank may wait for the same.
int exchange_data(Job& job, SendOperation& operation, Reception& reception) {
  job.progress.wait_until([&] {
    operation.await(reception.over);
    if (reception.over) return operation.is_over();
    int arrived = 0;
    const int received = mpi::calls().Test(&reception.request, &arrived, reception.status);
    if (arrived || received != MPI_SUCCESS) reception.end(job, received);
    return false;
  });
  return operation.raise();
}

/// MPI gives one handle to all receives from nobody, and so threads and later receives share it:
/// what is filed needs a handle of its own. Raises what MPI raises.
int make_own(MPI_Request* request) {
  MPI_Status status;
  const int code = mpi::calls().Wait(request, &status);
  return code == MPI_SUCCESS ? make_finished_request(status, request) : code;
}

/// MPI is asked about unusual ones alone.
bool is_tag(int tag) {
  const auto number = static_cast<std::uint64_t>(tag);
  return tag >= 0 && (number < mpi::least_tags || number < mpi::tags_of_world());
}

/// MPI may refuse the sending half, which then goes first: of a call that it refuses nothing is
/// received, and nothing sent.
bool may_be_refused(const Outgoing& out, int tag) {
  if (!out.row || !is_tag(tag)) return true;
  const std::shared_ptr<const mpi::CommInfo> comm = mpi::glance_at_comm(out.arguments.comm);
  return !comm || comm->world_rank(out.arguments.destination) == trace::any_peer;
}

/// May what arrives, or what a probe has taken from MPI, overwrite data that is still to be sent?
bool may_be_overwritten(const Outgoing& out) { return out.data && !out.buffer_stays; }

/// Of a call whose sending half MPI has refused all the same.
void take_back(MPI_Request* receive) {
  mpi::calls().Cancel(receive);
  mpi::calls().Wait(receive, MPI_STATUS_IGNORE);
}

bool is_cancelled(const StatusOf& status) {
  int cancelled = 0;
  mpi::calls().Test_cancelled(status, &cancelled);
  return cancelled != 0;
}

Side side(const SendArguments& use, int tag) { return {use.count, use.type, use.destination, tag}; }

Side side(const ReceiveArguments& arguments, const Envelope& from) {
  return {arguments.count, arguments.type, from.peer, from.tag};
}

Side side(const Receive& receive, const Envelope& from) {
  return {receive.count(), receive.type(), from.peer, from.tag};
}

/// An exchange whose send is prepared: `out` may be a frame, or data set aside.
int exchange_prepared(Job& job, Outgoing& out, int send_tag, const ReceiveArguments& arguments,
                      const Envelope& from, MPI_Status* given) {
  const std::optional<Standing::Kind> kind = kind_of(Op::sendrecv, arguments, from);
  if (trace::Row* const row = out.data ? nullptr : row_as_before(job, kind)) {
    return receive_as_before(job, *kind, *row, arguments, given, [&](MPI_Status* status) {
      return mpi::counted::Sendrecv(out.arguments.buffer, side(out.arguments, send_tag),
                                    arguments.buffer, side(arguments, from), arguments.comm,
                                    status);
    });
  }
  Receive receive;
  const bool watched = receive.watch(job, Op::sendrecv, arguments);
  if (watched) avoid_overlap(job, receive);
  const StatusOf status(given);
  const std::uint64_t begin = watched ? trace::now_ns() : 0;
  int code = MPI_SUCCESS;
  if (!out.data && !must_post(job)) {
    const SendArguments& use = out.arguments;
    code = mpi::counted::Sendrecv(use.buffer, side(use, send_tag), receive.buffer(),
                                  side(receive, from), arguments.comm, status);
    if (code != MPI_SUCCESS || !watched || !status.has_answer()) return code;
    code = deliver(job, receive, *status, begin);
    if (kind && code == MPI_SUCCESS) let_stand(job, *kind, receive);
    return code;
  }
  std::shared_ptr<SendOperation> operation;
  const auto start = [&] {
    operation = std::make_shared<SendOperation>(job, std::move(out));
    return operation->start(mpi::counted::Isend, send_tag);
  };
  const bool has_data = out.data != nullptr;
  const bool buffer_stays = out.buffer_stays;
  const bool is_doubtful = may_be_refused(out, send_tag);
  const bool sends_first = is_doubtful || may_be_overwritten(out);
  MPI_Request sending = MPI_REQUEST_NULL;
  if (is_doubtful && !has_data) {
    const SendArguments& use = out.arguments;
    code = mpi::counted::Isend(use.buffer, use.count, use.type, use.destination, send_tag, use.comm,
                               &sending);
    if (code != MPI_SUCCESS || sending == MPI_REQUEST_NULL) return code;
  } else if (sends_first) {
    code = start();
    if (code != MPI_SUCCESS || !operation->is_announced()) return code;
    // What arrives may overwrite it.
    if (!buffer_stays) job.progress.wait_until([&] { return operation->advance_data(); });
    operation->follow(job);
  }
  MPI_Request request = MPI_REQUEST_NULL;
  const auto probed = take_or_post(job, receive, from, arguments.comm, &request, code);
  const bool is_refused = !probed && request == MPI_REQUEST_NULL;
  if (is_refused && !sends_first) return code;  // and nothing is sent
  if (probed) code = deliver_probed(job, *probed, Op::sendrecv, arguments, status);
  Reception reception{receive, request, status, begin, watched, probed || is_refused, code};
  int sent = MPI_SUCCESS;
  bool is_sending = true;
  if (has_data && !sends_first) {
    sent = start();
    is_sending = sent == MPI_SUCCESS && operation->is_announced();
    if (is_sending) operation->follow(job);
  }
  if (is_sending) {
    sent = operation                     ? exchange_data(job, *operation, reception)
           : sending != MPI_REQUEST_NULL ? wait_for(job, &sending, MPI_STATUS_IGNORE)
                                         : send_in_one(job, out, send_tag);
  }
  if (!reception.over) {
    const bool has_failed = !is_sending || sent != MPI_SUCCESS;
    if (has_failed) mpi::calls().Cancel(&reception.request);  // the peer may never answer
    code = wait_for(job, &reception.request, status);
    if (!has_failed || !is_cancelled(status)) reception.end(job, code);
  }
  job.mpi_link.outbox.flush();
  return reception.code == MPI_SUCCESS ? sent : reception.code;
}

}  // namespace

int receive(Job& job, const ReceiveArguments& arguments, const Envelope& from, MPI_Status* given) {
  if (!job.watches_receives && !must_post(job)) {
    return mpi::counted::Recv(arguments.buffer, arguments.count, arguments.type, from.peer,
                              from.tag, arguments.comm, given);
  }
  const std::optional<Standing::Kind> kind = kind_of(Op::recv, arguments, from);
  if (trace::Row* const row = row_as_before(job, kind)) {
    return receive_as_before(job, *kind, *row, arguments, given, [&](MPI_Status* status) {
      return mpi::counted::Recv(arguments.buffer, arguments.count, arguments.type, from.peer,
                                from.tag, arguments.comm, status);
    });
  }
  Receive receive;
  const bool watched = receive.watch(job, Op::recv, arguments);
  if (watched) avoid_overlap(job, receive);
  if (!watched && !must_post(job)) {
    return mpi::counted::Recv(arguments.buffer, arguments.count, arguments.type, from.peer,
                              from.tag, arguments.comm, given);
  }
  const StatusOf status(given);
  const std::uint64_t begin = watched ? trace::now_ns() : 0;
  int code = MPI_SUCCESS;
  if (must_post(job)) {
    MPI_Request request = MPI_REQUEST_NULL;
    const auto probed = take_or_post(job, receive, from, arguments.comm, &request, code);
    if (probed) return deliver_probed(job, *probed, Op::recv, arguments, status);
    if (request == MPI_REQUEST_NULL) return code;
    code = wait_for(job, &request, status);
  } else {
    code = mpi::counted::Recv(receive.buffer(), receive.count(), receive.type(), from.peer,
                              from.tag, arguments.comm, status);
  }
  job.mpi_link.outbox.excuse();
  job.timings.collect(job);
  if (code != MPI_SUCCESS || !watched || !status.has_answer()) return code;
  code = deliver(job, receive, *status, begin);
  if (kind && code == MPI_SUCCESS) let_stand(job, *kind, receive);
  return code;
}

int receive_later(Job& job, Op op, const ReceiveArguments& arguments, const Envelope& from,
                  MPI_Request* request) {
  std::shared_ptr<ReceiveRequest> entry;
  bool watched = false;
  if (Receive::may_need_watching(job, op, arguments)) {
    entry = std::make_shared<ReceiveRequest>(job);
    watched = entry->receive.watch(job, op, arguments);
    if (watched) entry->claim_buffer();
    if (job.pacer.active()) entry->receive.travels_when_posted();
  }
  std::shared_lock<std::shared_mutex> posting;
  if (job.threaded) posting = job.probed.posting();
  if (const auto probed = job.probed.take(arguments.comm, from.peer, from.tag)) {
    if (!watched) {
      entry = std::make_shared<ReceiveRequest>(job);
      entry->receive.describe(job, op, arguments);
    }
    const int code = probed->deliver_later(job, *entry, request);
    if (entry->must_be_kept()) file(job, *request, std::move(entry));
    return code;
  }
  if (!watched) {
    return mpi::counted::Irecv(arguments.buffer, arguments.count, arguments.type, from.peer,
                               from.tag, arguments.comm, request);
  }
  const int code = post(entry->receive, from, arguments.comm, request);
  if (code == MPI_SUCCESS) file(job, *request, std::move(entry));
  return code;
}

int receive_matched(Job& job, const ReceiveArguments& arguments, MPI_Message* message,
                    MPI_Status* given) {
  Receive receive;
  const bool watched = receive.watch_matched(job, Op::mrecv, arguments);
  const StatusOf status(given);
  const int code = mpi::counted::Mrecv(receive.buffer(), receive.count(), receive.type(), message,
                                       watched ? status : given);
  if (code != MPI_SUCCESS || !watched || !status.has_answer()) return code;
  const int delivered = receive.deliver(job, *status);
  return delivered == MPI_SUCCESS ? code : receive.comm()->raise(delivered);
}

int receive_matched_later(Job& job, const ReceiveArguments& arguments, MPI_Message* message,
                          MPI_Request* request) {
  auto entry = std::make_shared<ReceiveRequest>(job);
  Receive& receive = entry->receive;
  const bool watched = receive.watch_matched(job, Op::imrecv, arguments);
  const int code =
      mpi::counted::Imrecv(receive.buffer(), receive.count(), receive.type(), message, request);
  if (code == MPI_SUCCESS && watched) file(job, *request, std::move(entry));
  return code;
}

int exchange(Job& job, const SendArguments& send, int send_tag, const ReceiveArguments& arguments,
             const Envelope& from, MPI_Status* status) {
  Outgoing out = prepare_send(job, {Op::sendrecv, Family::sendrecv, true}, send);
  if (out.error != MPI_SUCCESS) return out.error;
  return exchange_prepared(job, out, send_tag, arguments, from, status);
}

Outgoing set_aside(Job& job, Op op, const SendArguments& send) {
  const std::shared_ptr<mpi::TypeInfo> type = mpi::type_info(send.type);
  Outgoing out = prepare_send(job, {op, Family::sendrecv, false}, send);
  if (out.error != MPI_SUCCESS || out.frame || !type || send.count <= 0) return out;
  if (!send.buffer && type->contiguous) return out;  // MPI will refuse
  const std::size_t bytes = static_cast<std::size_t>(send.count) * type->size;
  out.frame = pack_elements(job, send, bytes);
  if (!out.frame) {
    const std::shared_ptr<mpi::CommInfo> comm = mpi::comm_info(send.comm);
    out.error = comm ? comm->raise(MPI_ERR_NO_MEM) : MPI_ERR_COMM;
    return out;
  }
  out.arguments.buffer = out.frame.data();
  if (!type->contiguous) {
    const std::size_t unit = type->element ? element_size(*type->element) : 1;
    out.arguments.type = type->packed_type();
    out.arguments.count = static_cast<MPI_Count>(bytes / unit);
  }
  return out;
}

int exchange_in_place(Job& job, const SendArguments& send, int send_tag,
                      const ReceiveArguments& arguments, const Envelope& from, MPI_Status* status) {
  if (send.destination == MPI_PROC_NULL || from.peer == MPI_PROC_NULL) {
    // Nothing is overwritten before it is sent.
    return exchange(job, send, send_tag, arguments, from, status);
  }
  Outgoing out = set_aside(job, Op::sendrecv_replace, send);
  if (out.error != MPI_SUCCESS) return out.error;
  return exchange_prepared(job, out, send_tag, arguments, from, status);
}

int exchange_later(Job& job, Outgoing out, int send_tag, Op op, const ReceiveArguments& arguments,
                   const Envelope& from, MPI_Request* request) {
  if (out.error != MPI_SUCCESS) return out.error;
  auto entry = std::make_shared<ExchangeRequest>(job);
  Receive& receive = entry->receive;
  const bool watched = receive.watch(job, op, arguments);
  if (watched) entry->claim_buffer();
  if (job.pacer.active()) receive.travels_when_posted();
  const bool sends_first = may_be_refused(out, send_tag) || may_be_overwritten(out);
  int raised = MPI_SUCCESS;
  if (sends_first) {
    raised = entry->send(std::move(out), send_tag);
    if (!entry->has_send()) return raised;
  }
  int code = MPI_SUCCESS;
  *request = MPI_REQUEST_NULL;
  std::unique_ptr<ProbedMessage> probed;
  {
    const auto posting = job.probed.posting();
    probed = job.probed.take(arguments.comm, from.peer, from.tag);
    if (probed && !watched) receive.describe(job, op, arguments);
    code = probed ? probed->deliver_later(job, *entry, request)
                  : post(receive, from, arguments.comm, request);
  }
  if (code != MPI_SUCCESS || *request == MPI_REQUEST_NULL) {
    if (sends_first) entry->complete_send_alone();
    return code;
  }
  if (!sends_first) {
    raised = entry->send(std::move(out), send_tag);
    if (!entry->has_send()) {
      if (!probed) take_back(request);
      return raised;
    }
  }
  if (from.peer == MPI_PROC_NULL) code = make_own(request);
  if (code != MPI_SUCCESS) {
    entry->complete_send_alone();
    return code;
  }
  entry->begin(*request);
  entry->follow(job);
  job.requests.insert(*request, std::move(entry));
  return raised;
}

}  // namespace mpress::engine
