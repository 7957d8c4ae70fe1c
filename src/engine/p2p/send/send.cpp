#include "engine/p2p/send/send.hpp"

#include <algorithm>
#include <utility>

#include "core/staging.hpp"
#include "engine/job/job.hpp"
#include "engine/p2p/standing.hpp"
#include "gpu/loaded_gpu.hpp"
#include "link/route.hpp"
#include "message/message.hpp"
#include "mpi/peek.hpp"

namespace mpress::engine {
namespace {

using trace::Reason;

/// Counts a message as it goes to MPI, in a call that began at `begin_ns`.
void count_message(Job& job, const Message& message, Codec codec, Reason reason,
                   std::size_t wire_bytes, std::uint64_t begin_ns, Outgoing& outgoing,
                   const Loss& loss = {}) {
  Departure departure{codec, reason};
  departure.loss = loss;
  if (const ChunkSend* data = outgoing.data.get()) {
    departure.way = data->way();
    departure.of_peer = data->detour();
    departure.number = link::Route(data->header().route).number;
  }
  departure.wire_bytes = wire_bytes;
  departure.begin_ns = begin_ns;
  outgoing.row = &count(job, message, departure, outgoing.span);
}

/// Is a message decided about by its kind alone, and has it a buffer?
bool is_plain(const SendCall& call, const SendArguments& arguments) {
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

/// Does it matter where a message lies? Of those that MPI takes from devices as they are: not where
/// it is too short to be encoded, and MPI may have it; nor where no rank looks for frames.
bool matters_where(const Job& job, const Message& message, bool is_short) {
  if (message.bytes == 0) return false;
  if (packs_for_mpi(job, message.layout)) return true;
  if (is_short) return takes_raw(job, message);
  return job.watches_receives() || message.call.coding;
}

/// Does MPI get a message as the program has it, without any work of mpress's?
bool is_left_to_mpi(const Job& job, const Message& message, const Choice& choice) {
  if (choice.spec.codec != Codec::none || choice.timing == policy::Timing::raw) return false;
  if (message.device == gpu::host) return true;
  return !takes_raw(job, message) && !packs_for_mpi(job, message.layout);
}

Standing::Kind kind_of(const SendCall& call, const SendArguments& arguments) {
  return {call.op, arguments.destination, arguments.comm, arguments.type, arguments.count};
}

/// How many messages may go to MPI like one that did so for this reason.
std::uint32_t lasting(Reason reason) {
  switch (reason) {
    case Reason::disabled:
    case Reason::type: return Standing::always;
    case Reason::threshold:
    case Reason::policy:
    case Reason::unknown: return Standing::some;
    default: return 0;
  }
}

/// Does the policy learn a link by messages that go as this one does?
bool tells_of_link(const Job& job, const Message& message, Reason reason) {
  return (reason == Reason::policy || reason == Reason::unknown) && message.device == gpu::host &&
         job.timings.may_come(message.bytes) &&
         job.policy.rate(job.endpoints.peer_of(message.peer)) != 0;
}

/// Would MPI get a message, which it gets for this reason, also if it lay elsewhere? Asked of MPIs
/// that take memory of devices. The question teaches the policy nothing.
bool is_left_wherever_it_is(const Job& job, const Message& message, Reason reason) {
  if (takes_raw(job, message) || packs_for_mpi(job, message.layout)) return false;
  if (reason != Reason::policy && reason != Reason::unknown) return true;  // whatever the place
  if (!job.watches_receives()) return true;
  Message there = message;
  constexpr int any_device = 0;
  there.device = message.device == gpu::host ? any_device : gpu::host;
  const Codec wanted = wanted_spec(job, message).codec;
  return job.policy.is_raw_by_costs(glance_at_subject(job, there, wanted));
}

/// Lets the decision about a message that MPI gets as it is stand for those like it. `is_placed`:
/// it was looked up where the message lies.
void let_stand(const Job& job, const SendArguments& arguments, const Message& message,
               Reason reason, bool is_placed, const Outgoing& outgoing, std::uint64_t changes) {
  const std::uint32_t left = lasting(reason);
  if (left == 0 || !is_plain(message.call, arguments) || trace::timeline.is_on()) return;
  if (tells_of_link(job, message, reason)) return;
  const bool on_host_alone = is_placed && !gpu::in_use();
  const bool is_certain = !is_placed || on_host_alone;
  if (!is_certain && !(job.gpu_aware && is_left_wherever_it_is(job, message, reason))) return;
  Standing::keep(kind_of(message.call, arguments),
                 {left, message.bytes, outgoing.row, on_host_alone}, changes);
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
  int cancelled = 0;
  mpi::calls().Test_cancelled(&status, &cancelled);
  if (cancelled) job.links.cancel(message);
}

/// Counts how long a sending call has been in MPI.
void count_wait(trace::Row& row, trace::Op op, std::uint64_t begin_ns) {
  const std::uint64_t end = trace::now_ns();
  trace::add(row.wait_ns, end - begin_ns);
  trace::note_wait(op, begin_ns, end);
}

/// A message that becomes another one for MPI: the elements of `bytes` bytes at `data`.
void replace(const mpi::TypeInfo& type, const void* data, std::size_t bytes, SendArguments& use) {
  use.buffer = data;
  if (type.contiguous && !type.element) {
    use.count = static_cast<MPI_Count>(bytes / type.size);
  } else {
    use.type = type.packed_type();
    use.count = static_cast<MPI_Count>(bytes / type.packed_unit());
  }
}

/// Prepares a message that is more than a call of MPI's, and counts it. An error is raised.
void prepare_with_work(Job& job, const SendArguments& arguments, const Message& message,
                       const Choice& choice, std::uint64_t begin_ns, Outgoing& outgoing) {
  // The same objects as at the quick look, which may end with any call of MPI's from here on.
  const std::shared_ptr<mpi::TypeInfo> type = mpi::type_info(arguments.type);
  const std::shared_ptr<mpi::CommInfo> comm = mpi::comm_info(arguments.comm);
  Prepared prepared;
  prepared.reason = choice.reason;
  const Status status = prepare(job, message, choice, prepared);
  if (!status.is_ok()) {
    outgoing.error = comm->raise(job.code_of(status));
    return;
  }
  outgoing.data = std::move(prepared.chunks);
  if (outgoing.data) outgoing.comm = comm;
  const bool is_encoded = choice.spec.codec != Codec::none && prepared.is_frame;
  if (is_encoded) {
    tell_error(message.call, prepared.loss.measured);
    outgoing.loss = prepared.loss;
  }
  count_message(job, message, is_encoded ? choice.spec.codec : Codec::none, prepared.reason,
                prepared.is_frame ? prepared.bytes : message.bytes, begin_ns, outgoing,
                outgoing.loss);
  trace::add(outgoing.row->encode_ns, prepared.took_ns);
  if (message.outcome && (prepared.data || outgoing.data)) {
    message.outcome->add(outgoing.loss.told());
  }
  if (!prepared.data) return;
  outgoing.frame = std::move(prepared.memory);
  replace(*type, prepared.data, prepared.bytes, outgoing.arguments);
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
  if (!is_plain(call, arguments)) return nullptr;
  const Standing* const standing = Standing::find(kind_of(call, arguments));
  if (!standing) return nullptr;
  standing->count();
  return &standing->row();
}

std::optional<Reason> certain_reason(const Job& job, const SendCall& call,
                                     const SendArguments& arguments) {
  const Handles handles = glance_at(arguments);
  if (!handles.comm) return std::nullopt;
  const Message message = message_on_host(call, arguments, handles);
  const Reason reason = reason_before_costs(job, message);
  if (reason != Reason::none) return reason;
  if (call.coding && call.coding->is_decided) return std::nullopt;
  if (!job.watches_receives()) return Reason::policy;
  if (tells_of_link(job, message, Reason::policy)) return std::nullopt;
  const Codec wanted = wanted_spec(job, message).codec;
  if (!job.policy.is_raw_by_costs(glance_at_subject(job, message, wanted))) return std::nullopt;
  return Reason::policy;
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
  const std::uint64_t changes = Standing::now();
  const Handles handles = glance_at(arguments);
  if (!handles.comm) return outgoing;
  Message message = message_on_host(call, arguments, handles);
  const bool too_short = is_short(job, message);
  const bool is_placed = matters_where(job, message, too_short);
  if (is_placed) {
    const Location location = locate(job, arguments.buffer, message.layout);
    message.device = location.device;
    message.is_readable = location.is_readable;
  }
  Choice choice{no_codec(), Reason::threshold};
  if (!too_short || message.device != gpu::host) choice = choose(job, message);
  if (is_left_to_mpi(job, message, choice)) {
    count_message(job, message, Codec::none, choice.reason, message.bytes, begin, outgoing);
    let_stand(job, arguments, message, choice.reason, is_placed, outgoing, changes);
    return outgoing;
  }
  if (call.op.algorithm == 0) {  // a collective call has waited for it
    outgoing.asked_of = message.device;
    outgoing.behind = message.behind = default_work(message.device);
  }
  prepare_with_work(job, arguments, message, choice, begin, outgoing);
  return outgoing;
}

int SendOperation::start(ImmediateSend send, int tag) {
  const SendArguments& use = outgoing_.arguments;
  return send(use.buffer, use.count, use.type, use.destination, tag, use.comm, &header_);
}

void SendOperation::open_request(MPI_Request* request) {
  request_.open_empty(request);
  has_request_ = true;
}

bool SendOperation::advance_data() {
  if (is_sent_) return true;
  is_sent_ = outgoing_.data->advance(*outgoing_.row, !is_awaited_.load(std::memory_order_relaxed));
  is_offered_.store(!is_sent_ && outgoing_.data->is_offered(), std::memory_order_relaxed);
  job_.chunks.follow();
  if (is_sent_) outgoing_.span.add_wire_bytes(outgoing_.data->sent_bytes());
  return is_sent_;
}

bool SendOperation::advance_header() {
  if (header_ == MPI_REQUEST_NULL) return true;
  int sent = 0;
  MPI_Status status;
  header_code_ = mpi::test(&header_, &sent, &status, &is_header_raised_);
  if (header_code_ != MPI_SUCCESS) {
    header_ = MPI_REQUEST_NULL;
  } else if (!sent) {
    return false;
  } else if (has_request_) {
    int cancelled = 0;
    mpi::calls().Test_cancelled(&status, &cancelled);
    mpi::calls().Status_set_cancelled(&request_.status(), cancelled);
  }
  return true;
}

/// The data comes first: its receiver may have been found by now, and the header may wait for one.
bool SendOperation::advance() {
  const bool is_sent = advance_data();
  if (!advance_header() || !is_sent) return false;
  if (std::exchange(has_request_, false)) request_.finish();
  return true;
}

int SendOperation::raise() const {
  const Ending ended = ending();
  return ended.raise_on ? ended.raise_on->raise(ended.code) : ended.code;
}

Ending SendOperation::finish(Job& job, MPI_Status& status) {
  recall_data(job, message(), status);
  return ending();
}

Ending SendOperation::ending() const {
  if (header_code_ != MPI_SUCCESS) {
    return {header_code_, is_header_raised_ ? nullptr : outgoing_.comm};
  }
  const int code = job_.code_of(outgoing_.data->status());
  return {code, code == MPI_SUCCESS ? nullptr : outgoing_.comm};
}

int SendOperation::cancel(MPI_Request*) {
  return header_ != MPI_REQUEST_NULL ? mpi::calls().Cancel(&header_) : MPI_SUCCESS;
}

void SendOperation::abandon() {
  if (header_ != MPI_REQUEST_NULL) mpi::calls().Request_free(&header_);
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
  SendOperation operation(job, std::move(outgoing));
  const int code = operation.start(send, tag);
  if (code != MPI_SUCCESS || !operation.is_announced()) return code;
  operation.await(true);
  job.progress.wait_until([&] {
    if (operation.advance_data()) return true;
    operation.advance_header();
    return false;
  });
  const std::uint64_t begin = trace::now_ns();
  MPI_Request header = operation.release_header();
  const int sent = wait_for(job, &header, MPI_STATUS_IGNORE);
  job.links.channel.outbox.flush();
  count_wait(row, op, begin);
  return sent == MPI_SUCCESS ? operation.raise() : sent;
}

int start_send(Job& job, Outgoing outgoing, ImmediateSend send, int tag, MPI_Request* request,
               Started* started) {
  if (!outgoing.data) {
    const SendArguments& use = outgoing.arguments;
    if (outgoing.frame) *request = MPI_REQUEST_NULL;
    const int code = send(use.buffer, use.count, use.type, use.destination, tag, use.comm, request);
    if (code == MPI_SUCCESS && outgoing.frame && *request != MPI_REQUEST_NULL) {
      started->frame = keep_frame(*request, std::move(outgoing.frame), FrameSend::no_message);
    }
    return code;
  }
  const bool buffer_stays = outgoing.buffer_stays;
  const auto operation = std::make_shared<SendOperation>(job, std::move(outgoing));
  const int code = operation->start(send, tag);
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
  // MPI itself tells of the rest.
  const int raised = operation->raise();
  *request = operation->release_header();
  started->frame = keep_frame(*request, operation->release_frame(), operation->message());
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
