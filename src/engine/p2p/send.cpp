#include "engine/p2p/send.hpp"

#include <string>
#include <utility>

#include "engine/backoff.hpp"
#include "engine/job.hpp"
#include "engine/p2p/send_message.hpp"
#include "link/route.hpp"
#include "trace/message.hpp"

namespace mpress::engine {
namespace {

using trace::Reason;

/// Counts a message as it goes to MPI, in a call that began at `begin_ns`.
void count_message(Job& job, const Message& message, Codec codec, Reason reason,
                   std::size_t wire_bytes, std::uint64_t begin_ns, Outgoing& outgoing) {
  const ChunkSend* chunks = outgoing.chunks.get();
  trace::Row& row = job.record.row({trace::Direction::send, message.op, message.peer, codec, reason,
                                    chunks ? chunks->way() : trace::Way::whole});
  trace::add(row.messages, 1);
  trace::add(row.raw_bytes, message.bytes);
  trace::add(row.wire_bytes, wire_bytes);
  outgoing.row = &row;
  if (!trace::timeline.is_on()) return;
  outgoing.span = trace::Span(
      {.begin_ns = begin_ns,
       .raw_bytes = message.bytes,
       .wire_bytes = wire_bytes,
       .message = chunks ? link::Route(chunks->header().route).number : trace::no_number,
       .peer = message.peer,
       .device = message.device,
       .kind = trace::Kind::send,
       .op = message.op,
       .codec = codec,
       .reason = reason});
}

std::size_t bytes_of(const SendArguments& arguments, const mpi::TypeInfo& type) {
  return static_cast<std::size_t>(arguments.count) * type.size;
}

/// Does mpress take this message from a device if it is not encoded, or may MPI have it where it
/// is?
bool takes_raw(const Job& job, const Message& message) {
  return !job.gpu_aware ||
         (message.bytes >= job.least_peer_bytes && job.peer_link.may_reach(message.peer));
}

/// MPI refuses data without a buffer; only a type with gaps can have absolute addresses.
bool is_refused(const SendArguments& arguments, const mpi::TypeInfo& type) {
  return !arguments.buffer && type.contiguous && bytes_of(arguments, type) > 0;
}

/// Counts a message in host memory that is too short to be encoded. False, and nothing is counted,
/// where it is not, or where MPI will refuse it.
bool count_short(Job& job, trace::Op op, const SendArguments& arguments, std::uint64_t begin_ns,
                 Outgoing& outgoing) {
  const std::shared_ptr<const mpi::TypeInfo> type = mpi::glance_at_type(arguments.type);
  const std::shared_ptr<const mpi::CommInfo> comm =
      type ? mpi::glance_at_comm(arguments.comm) : nullptr;
  if (!comm || is_refused(arguments, *type)) return false;
  const Message message{op,
                        arguments,
                        *type,
                        *comm,
                        comm->world_rank(arguments.destination),
                        bytes_of(arguments, *type),
                        gpu::host,
                        true};
  if (!is_short(job, message)) return false;
  if (message.bytes > 0 && takes_raw(job, message) &&
      device_of(job, arguments.buffer, *type) != gpu::host) {
    return false;
  }
  count_message(job, message, Codec::none, Reason::threshold, message.bytes, begin_ns, outgoing);
  return true;
}

/// A message that becomes another one for MPI: the elements of `bytes` bytes at `data`.
void replace(const Message& message, const void* data, std::size_t bytes, SendArguments& use) {
  use.buffer = data;
  if (message.type.contiguous && !message.type.element) {
    use.count = static_cast<MPI_Count>(bytes / message.type.size);
  } else {
    use.type = message.type.packed_type();
    use.count = static_cast<MPI_Count>(bytes / message.type.packed_unit());
  }
}

}  // namespace

Outgoing prepare_send(Job& job, trace::Op op, const SendArguments& arguments) {
  Outgoing outgoing;
  outgoing.arguments = arguments;
  if (arguments.destination < 0 || arguments.count < 0) return outgoing;
  const std::uint64_t begin = trace::timeline.now();
  if (count_short(job, op, arguments, begin, outgoing)) return outgoing;
  const std::shared_ptr<mpi::TypeInfo> type = mpi::type_info(arguments.type);
  const std::shared_ptr<mpi::CommInfo> comm = type ? mpi::comm_info(arguments.comm) : nullptr;
  if (!comm || is_refused(arguments, *type)) return outgoing;

  const std::size_t bytes = bytes_of(arguments, *type);
  const Location location = bytes > 0 ? locate(job, arguments.buffer, *type) : Location{};
  const Message message{op,
                        arguments,
                        *type,
                        *comm,
                        comm->world_rank(arguments.destination),
                        bytes,
                        location.device,
                        location.is_readable};

  Encoded encoded;
  const Spec spec = choose(job, message, encoded.reason);
  const bool encodes = spec.codec != Codec::none;
  std::string error;
  if (encodes && !validate_spec(spec, *type->element, error)) {
    trace::say("rank " + std::to_string(job.rank) + ": " + error);
    outgoing.error = comm->raise(job.spec_code);
    return outgoing;
  }
  if (location.device != gpu::host && (encodes || takes_raw(job, message))) {
    outgoing.error = fetch(job, message, spec, encoded);
    if (outgoing.error != MPI_SUCCESS) comm->raise(outgoing.error);
    if (outgoing.error != MPI_SUCCESS) return outgoing;
  } else if (encodes) {
    encoded = encode(job, message, spec);
  }
  const bool compressed = encodes && encoded.bytes > 0;
  const std::size_t wire_bytes = encoded.bytes > 0 ? encoded.bytes : bytes;
  if (encoded.bytes > 0) outgoing.chunks = std::move(encoded.chunks);
  if (outgoing.chunks) outgoing.comm = comm;
  count_message(job, message, compressed ? spec.codec : Codec::none, encoded.reason, wire_bytes,
                begin, outgoing);
  trace::add(outgoing.row->encode_ns, encoded.took_ns);
  const bool is_staged = location.device != gpu::host && encoded.frame;
  if (encoded.bytes == 0 && !is_staged) return outgoing;
  outgoing.frame = std::move(encoded.frame);
  replace(message, outgoing.frame.data(), wire_bytes, outgoing.arguments);
  return outgoing;
}

void send_chunks(Job& job, Outgoing& outgoing) {
  if (!outgoing.chunks) return;
  for (Backoff backoff; !outgoing.chunks->advance(job, *outgoing.row, false);) backoff.pause();
  const int code = outgoing.chunks->code();
  if (code != MPI_SUCCESS) outgoing.error = outgoing.comm->raise(code);
  outgoing.span.add_wire_bytes(outgoing.chunks->sent_bytes());
  outgoing.chunks.reset();
}

int start_offered_send(Job& job, Outgoing& outgoing, ImmediateSend send, int tag,
                       MPI_Request* request) {
  const SendArguments& use = outgoing.arguments;
  auto pending = std::make_unique<Pending>();
  const int code =
      send(use.buffer, use.count, use.type, use.destination, tag, use.comm, &pending->send_half);
  if (code != MPI_SUCCESS) return code;
  pending->frame = std::move(outgoing.frame);
  pending->chunked_message = outgoing.chunks->message();
  pending->offered = std::move(outgoing.chunks);
  pending->row = outgoing.row;
  pending->comm = std::move(outgoing.comm);
  pending->offered->advance(job, *pending->row, true);
  outgoing.span.add_wire_bytes(pending->offered->header().raw_bytes());
  MPI_Status status{};
  mpi::calls().Status_set_elements_x(&status, MPI_BYTE, 0);
  mpi::calls().Status_set_cancelled(&status, 0);
  status.MPI_SOURCE = MPI_ANY_SOURCE;
  status.MPI_TAG = MPI_ANY_TAG;
  if (pending->collect.emplace().open(status, request) != MPI_SUCCESS) {
    mpi::fatal("MPI refused a generalized request");
  }
  job.requests.insert(*request, std::move(pending));
  return MPI_SUCCESS;
}

int start_send(Job& job, Outgoing& outgoing, ImmediateSend send, int tag, MPI_Request* request) {
  const SendArguments& use = outgoing.arguments;
  const int code = send(use.buffer, use.count, use.type, use.destination, tag, use.comm, request);
  if (code == MPI_SUCCESS) send_chunks(job, outgoing);
  return code;
}

}  // namespace mpress::engine
