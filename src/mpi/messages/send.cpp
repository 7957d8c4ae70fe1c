#include "mpi/messages/send.hpp"

#include <algorithm>
#include <utility>

#include "core/staging.hpp"
#include "message/decision.hpp"
#include "mpi/job/job.hpp"
#include "mpi/peek.hpp"

namespace mpress::engine {
namespace {

/// Does its key say all that counts for a message, and has it a buffer?
bool is_known_by_key(const SendCall& call, const SendArguments& arguments) {
  return call.op.algorithm == 0 && !call.coding && !call.raw_for && !arguments.spec &&
         !arguments.outcome && arguments.buffer;
}

std::size_t bytes_of(const SendArguments& arguments, const mpi::TypeInfo& type) {
  return static_cast<std::size_t>(arguments.count) * type.size;
}

/// MPI refuses ranks that there are not, and data without a buffer; only a type with gaps can have
/// absolute addresses.
bool is_refused(const SendArguments& arguments, const mpi::TypeInfo& type,
                const mpi::CommInfo& comm) {
  const std::vector<int>& ranks = comm.world_ranks;
  const auto destination = static_cast<std::size_t>(arguments.destination);
  if (!ranks.empty() && destination >= ranks.size()) return true;
  return !arguments.buffer && type.contiguous && bytes_of(arguments, type) > 0;
}

/// The objects behind a message's handles, for a quick look; both null where MPI refuses it.
struct Handles {
  std::shared_ptr<const mpi::TypeInfo> type;
  std::shared_ptr<const mpi::CommInfo> comm;
};

Handles glance_at(const SendArguments& arguments) {
  Handles handles{mpi::glance_at_type(arguments.type), nullptr};
  if (handles.type) handles.comm = mpi::glance_at_comm(arguments.comm);
  if (!handles.comm || is_refused(arguments, *handles.type, *handles.comm)) return {};
  return handles;
}

/// The message as it is where its buffer lies in memory of the host. `handles` outlive it.
Message message_on_host(const SendCall& call, const SendArguments& arguments,
                        const Handles& handles) {
  return message_of(call, arguments, *handles.type, *handles.comm,
                    handles.comm->world_rank(arguments.destination),
                    bytes_of(arguments, *handles.type), {gpu::host, true});
}

CachedDecision::Key key_of(const SendCall& call, const SendArguments& arguments) {
  return {call.op, arguments.destination, mpi::handle_bits(arguments.comm),
          mpi::handle_bits(arguments.type), arguments.count};
}

/// Keeps a frame until MPI is done with it; null where that is so already, and MPI may have handed
/// out one request for many sends.
std::shared_ptr<FrameSend> keep_frame(MPI_Request request, memory::Buffer frame,
                                      std::uint64_t message) {
  int complete = 0;
  mpi::calls().Request_get_status(request, &complete, MPI_STATUS_IGNORE);
  return complete ? nullptr : std::make_shared<FrameSend>(std::move(frame), message);
}

/// After MPI has completed a header with `status`: where it was cancelled, so is its data.
void recall_data(Job& job, std::uint64_t message, const MPI_Status& status) {
  if (mpi::is_cancelled(status)) job.links.cancel(message);
}

/// Counts how long a sending call has been in MPI.
void count_wait(trace::Row& row, trace::Op op, std::uint64_t begin_ns) {
  const std::uint64_t end = trace::now_ns();
  trace::add(row.wait_ns, end - begin_ns);
  trace::note_wait(op, begin_ns, end);
}

Items items_of(const mpi::TypeInfo& type, MPI_Datatype given) {
  if (type.contiguous && !type.element) return {given, type.size};
  return {type.packed_type(), type.packed_unit()};
}

/// Makes of a message what MPI gets in its place, and counts it. An error is raised.
void prepare_with_work(Job& job, const Message& like, const Choice& choice, std::uint64_t begin_ns,
                       Outgoing& outgoing) {
  // The same objects as at the quick look, which may end with any call of MPI's from here on.
  const std::shared_ptr<mpi::TypeInfo> type = mpi::type_info(outgoing.arguments.type);
  std::shared_ptr<mpi::CommInfo> comm = mpi::comm_info(outgoing.arguments.comm);
  Prepared prepared;
  if (const Status status = prepare_counted(job, like, choice, begin_ns, prepared);
      !status.is_ok()) {
    outgoing.error = comm->raise(job.code_of(status));
    return;
  }
  outgoing.row = prepared.row;
  outgoing.span = std::move(prepared.span);
  const Items items = items_of(*type, outgoing.arguments.type);
  if (prepared.chunks) {
    outgoing.data = std::move(prepared.chunks);
    outgoing.comm = std::move(comm);
    outgoing.items = items;
  } else if (prepared.data) {
    outgoing.frame = std::move(prepared.memory);
    outgoing.arguments.buffer = prepared.data;
    outgoing.arguments.count = static_cast<MPI_Count>(prepared.bytes / items.unit);
    outgoing.arguments.type = items.type;
  }
}

}  // namespace

Message message_of(const SendCall& call, const SendArguments& arguments, const mpi::TypeInfo& type,
                   const mpi::CommInfo& comm, int peer, std::size_t bytes, const Location& place) {
  return {call,
          arguments.buffer,
          arguments.count,
          type,
          comm,
          peer,
          bytes,
          place.device,
          place.is_readable,
          arguments.spec,
          arguments.outcome};
}

memory::Buffer pack_elements(Job& job, const SendArguments& arguments, std::size_t bytes) {
  memory::Buffer packed = job.pool.take(bytes);
  const std::shared_ptr<mpi::TypeInfo> type = mpi::type_info(arguments.type);
  if (!packed || !type) return {};
  const bool is_readable = locate(job, arguments.buffer, *type).is_readable;
  if (!type->pack(arguments.buffer, arguments.count, is_readable, packed.data(), bytes)) return {};
  return packed;
}

trace::Row* count_as_before(Job& job, const SendCall& call, const SendArguments& arguments) {
  job.devices.look(arguments.buffer);
  job.timings.collect();  // which may call MPI, and so comes before the quick looks
  if (!is_known_by_key(call, arguments)) return nullptr;
  const CachedDecision* const cached = CachedDecision::find(key_of(call, arguments));
  return cached ? &cached->count(arguments.count) : nullptr;
}

Outgoing prepare_send(Job& job, const SendCall& call, const SendArguments& arguments) {
  Outgoing outgoing;
  outgoing.arguments = arguments;
  outgoing.op = call.op;
  outgoing.buffer_stays = call.buffer_stays;
  if (arguments.destination < 0 || arguments.count < 0) return outgoing;
  outgoing.row = count_as_before(job, call, arguments);
  if (outgoing.row) return outgoing;
  const std::uint64_t begin = trace::timeline.now();
  const std::uint64_t changes = CachedDecision::now();
  const Handles handles = glance_at(arguments);
  if (!handles.comm) return outgoing;
  Message message = message_on_host(call, arguments, handles);
  const Decision decision = decide(job, message);
  if (decision.is_plain) {
    trace::Row& row = count_plain(job, message, decision.choice.reason, begin, outgoing.span);
    outgoing.row = &row;
    if (is_known_by_key(call, arguments)) {
      keep_decision(job, key_of(call, arguments), message, decision, row, changes);
    }
    return outgoing;
  }
  if (call.op.algorithm == 0) {  // a collective call has waited for it
    outgoing.asked_of = message.device;
    outgoing.behind = message.behind = default_work(message.device);
  }
  prepare_with_work(job, message, decision.choice, begin, outgoing);
  return outgoing;
}

int SendOperation::start(ImmediateSend send, const Items& items, std::span<const int> readers,
                         MPI_Comm comm, int tag) {
  for (const Send::Beginning& one : send_->beginnings()) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = send(one.data, static_cast<MPI_Count>(one.bytes / items.unit), items.type,
                          readers[one.reader], tag, comm, &request);
    note_header(code, true);
    if (request != MPI_REQUEST_NULL) headers_.push_back(request);
  }
  return header_code_;
}

/// The first failure counts.
void SendOperation::note_header(int code, bool is_raised) {
  if (header_code_ != MPI_SUCCESS || code == MPI_SUCCESS) return;
  header_code_ = code;
  is_header_raised_ = is_raised;
}

void SendOperation::open_request(MPI_Request* request) {
  request_.open_empty(request);
  has_request_ = true;
}

bool SendOperation::advance_data() {
  if (is_sent_) return true;
  is_sent_ = send_->advance(!is_awaited_.load(std::memory_order_relaxed));
  is_offered_.store(!is_sent_ && send_->is_offered(), std::memory_order_relaxed);
  job_.chunks.follow();
  return is_sent_;
}

bool SendOperation::advance_headers() {
  std::erase_if(headers_, [this](MPI_Request& header) {
    int sent = 0;
    MPI_Status status;
    bool is_raised = false;
    const int code = mpi::test(&header, &sent, &status, &is_raised);
    note_header(code, is_raised);
    if (code == MPI_SUCCESS && sent && has_request_) {
      mpi::calls().Status_set_cancelled(&request_.status(), mpi::is_cancelled(status));
    }
    return code != MPI_SUCCESS || sent != 0;
  });
  return headers_.empty();
}

/// The data comes first: its receiver may have been found by now, and the header may wait for one.
bool SendOperation::advance() {
  const bool is_sent = advance_data();
  if (!advance_headers() || !is_sent) return false;
  if (std::exchange(has_request_, false)) request_.finish();
  return true;
}

int SendOperation::raise() const {
  const Ending ended = ending();
  return ended.raise_on ? ended.raise_on->raise(ended.code) : ended.code;
}

Ending SendOperation::finish(Job& job, MPI_Status& status) {
  recall_data(job, operation(), status);
  return ending();
}

Ending SendOperation::ending() const {
  if (header_code_ != MPI_SUCCESS) {
    return {header_code_, is_header_raised_ ? nullptr : comm_};
  }
  const int code = job_.code_of(send_->status());
  return {code, code == MPI_SUCCESS ? nullptr : comm_};
}

int SendOperation::cancel(MPI_Request*) {
  return headers_.empty() ? MPI_SUCCESS : mpi::calls().Cancel(&headers_.front());
}

void SendOperation::abandon() {
  for (MPI_Request& header : headers_) mpi::calls().Request_free(&header);
  headers_.clear();
  if (std::exchange(has_request_, false)) request_.finish();
}

Ending FrameSend::finish(Job& job, MPI_Status& status) {
  if (message_ != no_message) recall_data(job, message_, status);
  return {};
}

int send_now(Job& job, const Outgoing& out, BlockingSend call, ImmediateSend start, int tag) {
  const SendArguments& use = out.arguments;
  const std::uint64_t begin = out.frame ? trace::now_ns() : 0;
  int code = MPI_SUCCESS;
  if (job.progress.idle()) {
    code = call(use.buffer, use.count, use.type, use.destination, tag, use.comm);
  } else {
    MPI_Request request = MPI_REQUEST_NULL;
    code = start(use.buffer, use.count, use.type, use.destination, tag, use.comm, &request);
    if (code == MPI_SUCCESS) code = wait_for(job, &request, MPI_STATUS_IGNORE);
  }
  if (out.frame && out.row) count_wait(*out.row, out.op, begin);
  return code;
}

int send_data(Job& job, Outgoing outgoing, ImmediateSend send, int tag) {
  trace::Row& row = *outgoing.row;
  const trace::Op op = outgoing.op;
  SendOperation operation(job, std::move(outgoing.data), outgoing.comm);
  const int code = operation.start(send, outgoing, tag);
  if (code != MPI_SUCCESS || !operation.is_announced()) return code;
  operation.await(true);
  job.progress.wait_until([&] {
    if (operation.advance_data()) return true;
    operation.advance_headers();
    return false;
  });
  const std::uint64_t begin = trace::now_ns();
  MPI_Request header = operation.release_request();
  const int sent = wait_for(job, &header, MPI_STATUS_IGNORE);
  job.links.channel.outbox.flush();
  count_wait(row, op, begin);
  return sent == MPI_SUCCESS ? operation.raise() : sent;
}

int start_send(Job& job, Outgoing outgoing, ImmediateSend send, int tag, MPI_Request* request,
               Started* started) {
  const SendArguments& use = outgoing.arguments;
  if (!outgoing.data) {
    if (outgoing.frame) *request = MPI_REQUEST_NULL;
    const int code = send(use.buffer, use.count, use.type, use.destination, tag, use.comm, request);
    if (code == MPI_SUCCESS && outgoing.frame && *request != MPI_REQUEST_NULL) {
      started->frame = keep_frame(*request, std::move(outgoing.frame), FrameSend::no_message);
    }
    return code;
  }
  const bool buffer_stays = outgoing.buffer_stays;
  const auto operation =
      std::make_shared<SendOperation>(job, std::move(outgoing.data), outgoing.comm);
  const int code = operation->start(send, outgoing, tag);
  if (code != MPI_SUCCESS || !operation->is_announced()) return code;
  // The program may compute for long without a call, so what needs this process's host is done at
  // once where no thread makes progress.
  const bool may_stay = buffer_stays && job.progress.is_threaded();
  job.progress.wait_until([&] {
    return operation->advance_data() || may_stay || (buffer_stays && !operation->needs_host());
  });
  if (!operation->is_sent()) {
    *request = MPI_REQUEST_NULL;
    started->operation = operation;
    return MPI_SUCCESS;
  }
  // MPI itself completes the rest.
  const int raised = operation->raise();
  *request = operation->release_request();
  started->frame = keep_frame(*request, operation->release_frame(), operation->operation());
  return raised;
}

int send_later(Job& job, Outgoing outgoing, ImmediateSend send, int tag, MPI_Request* request) {
  Started started;
  const int code = start_send(job, std::move(outgoing), send, tag, request, &started);
  if (started.operation) {
    started.operation->open_request(request);
    started.operation->follow(job);
    job.requests.insert(*request, std::move(started.operation));
  }
  if (started.frame) job.requests.insert(*request, std::move(started.frame));
  return code;
}

}  // namespace mpress::engine
