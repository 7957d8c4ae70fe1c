#include "mpi/messages/exchange.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "mpi/calls/counted.hpp"
#include "mpi/messages/blocking_receive.hpp"
#include "mpi/messages/plain_receive.hpp"
#include "mpi/messages/receive_request.hpp"
#include "mpi/objects/tags.hpp"
#include "mpi/requests/finished_request.hpp"

namespace mpress::engine {
namespace {

using mpi::counted::Side;
using trace::Op;

/// MPI gives one handle to all receives from MPI_PROC_NULL, and so threads and later receives share
/// it: what is filed needs a handle of its own. Raises what MPI raises.
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

Side side(const SendArguments& use, int tag) { return {use.count, use.type, use.destination, tag}; }

Side side(const ReceiveArguments& arguments, const MessageSource& from) {
  return {arguments.count, arguments.type, from.peer, from.tag};
}

/// The receiving half.
struct Receiving {
  ReceiveArguments posted;  ///< what MPI gets
  std::uint64_t begin_ns;
  const PlainReceive* plain;  ///< null where it is
  MpiReceive* receive;
  bool is_watched;  ///< the latter

  /// Where MPI returned `code` for it. Returns the call's code, which has been raised.
  int end(Job& job, const StatusOf& status, int code) const {
    if (plain) return plain->end(job, Op::sendrecv, status, begin_ns, code);
    return end_receive(*receive, is_watched, status, begin_ns, code);
  }
};

/// An exchange of which neither half waits for the other's end: the other rank may wait for the
/// same. What it refers to outlives it.
class Exchange {
 public:
  Exchange(Job& job, Outgoing& out, int send_tag, const Receiving& receiving,
           const MessageSource& from, const StatusOf& status)
      : job_(job),
        out_(out),
        send_tag_(send_tag),
        in_(receiving),
        from_(from),
        status_(status),
        has_data_(out.data != nullptr),
        is_doubtful_(may_be_refused(out, send_tag)),
        sends_first_(is_doubtful_ || may_be_overwritten(out)) {}
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// Returns an error code of MPI's, which has been raised.
  int run(const ReceiveArguments& arguments);

 private:
  bool begin_send_first();
  bool start_operation();
  void send();
  void exchange_data();
  void await_receive();
  void received(int code);

  Job& job_;
  Outgoing& out_;
  const int send_tag_;
  const Receiving& in_;
  const MessageSource& from_;
  const StatusOf& status_;
  const bool has_data_;     ///< that mpress sends
  const bool is_doubtful_;  ///< MPI may refuse to send
  const bool sends_first_;

  std::shared_ptr<SendOperation> operation_;  ///< of data
  MPI_Request sending_ = MPI_REQUEST_NULL;    ///< of what MPI has begun to send
  MPI_Request receiving_ = MPI_REQUEST_NULL;  ///< the same of what it receives
  bool is_sending_ = true;                    ///< or has sent
  bool is_received_ = false;
  int sent_code_ = MPI_SUCCESS;
  int received_code_ = MPI_SUCCESS;
};

/// False where the data's header did not leave: nothing is sent.
bool Exchange::start_operation() {
  operation_ = std::make_shared<SendOperation>(job_, std::move(out_.data), out_.comm);
  sent_code_ = operation_->start(mpi::counted::Isend, out_, send_tag_);
  is_sending_ = sent_code_ == MPI_SUCCESS && operation_->is_announced();
  return is_sending_;
}

/// What MPI may refuse, and what arriving data may overwrite. False where nothing is sent.
bool Exchange::begin_send_first() {
  if (is_doubtful_ && !has_data_) {
    const SendArguments& use = out_.arguments;
    sent_code_ = mpi::counted::Isend(use.buffer, use.count, use.type, use.destination, send_tag_,
                                     use.comm, &sending_);
    return sent_code_ == MPI_SUCCESS && sending_ != MPI_REQUEST_NULL;
  }
  const bool buffer_stays = out_.buffer_stays;
  if (!start_operation()) return false;
  if (!buffer_stays) job_.progress.wait_until([&] { return operation_->advance_data(); });
  operation_->follow(job_);
  return true;
}

void Exchange::received(int code) {
  is_received_ = true;
  received_code_ = in_.end(job_, status_, code);
}

/// Receives meanwhile.
void Exchange::exchange_data() {
  job_.progress.wait_until([&] {
    operation_->await(is_received_);
    if (is_received_) return operation_->is_over();
    int arrived = 0;
    const int code = mpi::calls().Test(&receiving_, &arrived, status_);
    if (arrived || code != MPI_SUCCESS) received(code);
    return false;
  });
  sent_code_ = operation_->raise();
}

/// The sending half, or the rest of it.
void Exchange::send() {
  if (has_data_ && !sends_first_) {
    if (!start_operation()) return;
    operation_->follow(job_);
  }
  if (operation_) {
    exchange_data();
  } else if (sending_ != MPI_REQUEST_NULL) {
    sent_code_ = wait_for(job_, &sending_, MPI_STATUS_IGNORE);
  } else {
    sent_code_ = send_now(job_, out_, mpi::counted::Send, mpi::counted::Isend, send_tag_);
  }
}

/// Where nothing was sent, the peer may never answer.
void Exchange::await_receive() {
  const bool has_failed = !is_sending_ || sent_code_ != MPI_SUCCESS;
  if (has_failed) mpi::calls().Cancel(&receiving_);
  const int code = wait_for(job_, &receiving_, status_);
  if (has_failed && mpi::is_cancelled(*status_)) return;
  received(code);
}

int Exchange::run(const ReceiveArguments& arguments) {
  if (sends_first_ && !begin_send_first()) return sent_code_;
  int code = MPI_SUCCESS;
  const auto probed = take_or_post(job_, in_.posted, from_, &receiving_, code);
  if (probed) {
    is_received_ = true;
    code = deliver_probed(job_, *probed, Op::sendrecv, arguments, status_);
  } else if (receiving_ == MPI_REQUEST_NULL) {
    if (!sends_first_) return code;  // and nothing is sent
    is_received_ = true;
  }
  received_code_ = code;
  send();
  if (!is_received_) await_receive();
  job_.links.channel.outbox.flush();
  return received_code_ == MPI_SUCCESS ? sent_code_ : received_code_;
}

/// An exchange of which MPI has both halves.
int exchange_by_mpi(Job& job, const SendArguments& send, int send_tag, const Receiving& in,
                    const MessageSource& from, const StatusOf& status) {
  const ReceiveArguments& to = in.posted;
  const int code = mpi::counted::Sendrecv(send.buffer, side(send, send_tag), to.buffer,
                                          side(to, from), to.comm, status);
  job.links.channel.outbox.excuse();
  job.timings.collect();
  return in.end(job, status, code);
}

/// An exchange whose send is prepared: `out` may be a frame, or data set aside. `plain`: the
/// receiving half, where it is that.
int exchange_prepared(Job& job, Outgoing& out, int send_tag, const ReceiveArguments& arguments,
                      const std::optional<PlainReceive>& plain, const MessageSource& from,
                      MPI_Status* given) {
  const auto exchange_with = [&](const Receiving& in) {
    const StatusOf status(given);
    if (out.data || must_post(job)) {
      return Exchange(job, out, send_tag, in, from, status).run(arguments);
    }
    return exchange_by_mpi(job, out.arguments, send_tag, in, from, status);
  };
  if (plain) return exchange_with({plain->posted(), plain->begin(), &*plain, nullptr, false});
  MpiReceive receive(job);
  receive.core().place().buffer().know(out.asked_of, out.behind);
  const bool watched = receive.watch(Op::sendrecv, arguments);
  if (watched) avoid_overlap(job, receive);
  const std::uint64_t begin = watched ? trace::now_ns() : 0;
  return exchange_with({receive.posted(), begin, nullptr, &receive, watched});
}

}  // namespace

int exchange(Job& job, const SendArguments& send, int send_tag, const ReceiveArguments& arguments,
             const MessageSource& from, MPI_Status* status) {
  const SendCall call{Op::sendrecv, Family::sendrecv, true};
  const auto plain = PlainReceive::of(job, arguments, true);
  if (plain && !must_post(job) && count_as_before(job, call, send)) {
    const Receiving in{plain->posted(), plain->begin(), &*plain, nullptr, false};
    return exchange_by_mpi(job, send, send_tag, in, from, StatusOf(status));
  }
  Outgoing out = prepare_send(job, call, send);
  if (out.error != MPI_SUCCESS) return out.error;
  return exchange_prepared(job, out, send_tag, arguments, plain, from, status);
}

Outgoing set_aside(Job& job, Op op, const SendArguments& send) {
  const std::shared_ptr<mpi::TypeInfo> type = mpi::type_info(send.type);
  Outgoing out = prepare_send(job, {op, Family::sendrecv, false}, send);
  if (out.error != MPI_SUCCESS || !out.is_raw() || !type || send.count <= 0) return out;
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
    out.arguments.type = type->packed_type();
    out.arguments.count = static_cast<MPI_Count>(bytes / type->packed_unit());
  }
  return out;
}

int exchange_in_place(Job& job, const SendArguments& send, int send_tag,
                      const ReceiveArguments& arguments, const MessageSource& from,
                      MPI_Status* status) {
  if (send.destination == MPI_PROC_NULL || from.peer == MPI_PROC_NULL) {
    // Nothing is overwritten before it is sent.
    return exchange(job, send, send_tag, arguments, from, status);
  }
  Outgoing out = set_aside(job, Op::sendrecv_replace, send);
  if (out.error != MPI_SUCCESS) return out.error;
  return exchange_prepared(job, out, send_tag, arguments, PlainReceive::of(job, arguments, true),
                           from, status);
}

int exchange_later(Job& job, Outgoing out, int send_tag, Op op, const ReceiveArguments& arguments,
                   const MessageSource& from, MPI_Request* request) {
  if (out.error != MPI_SUCCESS) return out.error;
  auto entry = std::make_shared<ExchangeRequest>(job);
  MpiReceive& receive = entry->receive;
  receive.core().place().buffer().know(out.asked_of, out.behind);
  const bool watched = receive.watch(op, arguments);
  if (watched) entry->claim_buffer();
  if (job.pacer.active()) receive.core().travels_from(trace::now_ns());
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
    if (probed && !watched) receive.describe(op, arguments);
    code = probed ? probed->deliver_later(*entry, request) : post(receive.posted(), from, request);
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
  receive.outlive_call();
  entry->follow(job);
  job.requests.insert(*request, std::move(entry));
  return raised;
}

}  // namespace mpress::engine
