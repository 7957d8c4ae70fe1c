#include "engine/send.hpp"

#include <cstring>
#include <string>

#include "codec/codec.hpp"
#include "engine/comm_info.hpp"
#include "engine/job.hpp"
#include "engine/relayout.hpp"
#include "engine/type_info.hpp"
#include "link/counted.hpp"
#include "memory/kind.hpp"
#include "trace/message.hpp"

namespace mpress::engine {
namespace {

using trace::Reason;

/// A message to be sent, and what is known of it.
struct Message {
  trace::Op op;
  const SendArguments& arguments;
  const TypeInfo& type;
  const CommInfo& comm;
  int peer;           ///< rank in MPI_COMM_WORLD; trace::any_peer where it has none
  std::size_t bytes;  ///< of data, without gaps
};

/// Whether a kill switch holds for this message.
bool is_switched_off(const Config& config, const Message& message) {
  switch (message.op) {
    case trace::Op::start:
      if (config.is_disabled(Family::persistent)) return true;
      break;
    case trace::Op::sendrecv:
    case trace::Op::isendrecv:
    case trace::Op::sendrecv_replace:
    case trace::Op::isendrecv_replace:
      if (config.is_disabled(Family::sendrecv)) return true;
      break;
    default: break;
  }
  return config.is_disabled(Family::p2p) ||
         (config.is_disabled(Family::derived) && !message.type.contiguous);
}

/// What to encode this message, which is not short, with; none where it is left raw, and then
/// `reason` says why.
Spec choose(Job& job, const Message& message, Reason& reason) {
  Spec none;
  none.codec = Codec::none;
  Spec wanted = message.comm.hints.codec(job.config.spec);
  if (wanted.codec == Codec::automatic) wanted.codec = Codec::mpc;
  if (!message.type.element) {
    reason = Reason::type;
  } else if (message.peer == trace::any_peer) {
    reason = Reason::communicator;
  } else if (job.has_sessions.load(std::memory_order_relaxed)) {
    reason = Reason::sessions;
  } else if (wanted.codec == Codec::none || is_switched_off(job.config, message)) {
    reason = Reason::disabled;
  } else if (memory::kind_of(message.arguments.buffer) == memory::Kind::device) {
    reason = Reason::device;
  } else if (!job.policy.worth_it(wanted.codec, message.bytes)) {
    reason = Reason::policy;
  } else {
    return wanted;
  }
  return none;
}

/// Counts a message as it goes to MPI. Returns its row.
trace::Row& count_message(Job& job, const Message& message, Codec codec, Reason reason,
                          std::size_t wire_bytes, bool chunked = false) {
  trace::Row& row =
      job.record.row({trace::Direction::send, message.op, message.peer, codec, reason, chunked});
  trace::add(row.messages, 1);
  trace::add(row.raw_bytes, message.bytes);
  trace::add(row.wire_bytes, wire_bytes);
  return row;
}

std::size_t bytes_of(const SendArguments& arguments, const TypeInfo& type) {
  return static_cast<std::size_t>(arguments.count) * type.size;
}

/// MPI refuses data without a buffer; only a type with gaps can have absolute addresses.
bool is_refused(const SendArguments& arguments, const TypeInfo& type) {
  return !arguments.buffer && type.contiguous && bytes_of(arguments, type) > 0;
}

/// Counts a message that is too short to be encoded. Null, and nothing is counted, where it is
/// not, or where MPI will refuse it.
trace::Row* count_short(Job& job, trace::Op op, const SendArguments& arguments) {
  const std::shared_ptr<const TypeInfo> type = glance_at_type(arguments.type);
  const std::shared_ptr<const CommInfo> comm = type ? glance_at_comm(arguments.comm) : nullptr;
  if (!comm || is_refused(arguments, *type)) return nullptr;
  const std::size_t bytes = bytes_of(arguments, *type);
  const std::size_t threshold = comm->hints.threshold(job.config.threshold);
  if (bytes >= threshold && bytes >= wire::min_frame_bytes) return nullptr;
  const int peer = comm->world_rank(arguments.destination);
  return &count_message(job, {op, arguments, *type, *comm, peer, bytes}, Codec::none,
                        Reason::threshold, bytes);
}

/// Puts the header before a payload, if there is one, and zeros behind it. Returns the frame's
/// size.
std::size_t close_frame(Job& job, const wire::Header& header, memory::Buffer& frame) {
  const std::size_t bytes = wire::frame_bytes(header.payload_bytes);
  const std::size_t used = wire::header_bytes + header.payload_bytes;
  wire::write_header(header, job.nonce, frame.data());
  std::memset(frame.data() + used, 0, bytes - used);
  return bytes;
}

/// Writes a frame. Returns its size, or 0 where it would not be smaller than the message.
std::size_t write_frame(Job& job, const Spec& spec, ElementType type, const void* elements,
                        std::size_t count, memory::Buffer& frame) {
  std::byte* payload = frame.data() + wire::header_bytes;
  wire::Header header;
  header.spec = codec::resolve(spec, type, elements, count);
  header.type = type;
  header.count = count;
  header.payload_bytes = codec::encode(header.spec, type, elements, count, payload);
  if (wire::frame_bytes(header.payload_bytes) > header.raw_bytes()) return 0;
  return close_frame(job, header, frame);
}

/// The frame that a message became; 0 bytes where it goes raw after all, for `reason`.
struct Encoded {
  memory::Buffer frame;
  std::size_t bytes = 0;
  std::unique_ptr<ChunkSend> chunks;  ///< which the frame announces, and which count themselves
  Reason reason = Reason::none;
  std::uint64_t took_ns = 0;
};

/// Encodes a message of floats with a spec that fits them.
Encoded encode(Job& job, const Message& message, const Spec& spec) {
  const std::uint64_t begin = trace::now_ns();
  const ElementType type = *message.type.element;
  const std::size_t count = message.bytes / element_size(type);
  Encoded encoded;
  encoded.reason = Reason::memory;
  memory::Buffer packed;
  const void* elements = message.arguments.buffer;
  if (!message.type.contiguous) {
    packed = pack_elements(job, message.arguments, message.bytes);
    elements = packed.data();
    if (!packed) return encoded;
  }
  if (job.chunks.cuts(message.bytes)) {
    encoded.chunks = ChunkSend::plan(job, spec, type, elements, count, message.peer, packed);
  }
  const bool cut = encoded.chunks != nullptr;
  encoded.frame =
      job.pool.take(wire::frame_bytes(cut ? 0 : codec::max_payload_bytes(spec, type, count)));
  if (!encoded.frame) return encoded;
  encoded.reason = Reason::none;
  if (cut) {
    encoded.bytes = close_frame(job, encoded.chunks->header(), encoded.frame);
    return encoded;
  }
  encoded.bytes = write_frame(job, spec, type, elements, count, encoded.frame);
  encoded.took_ns = trace::now_ns() - begin;
  const bool smaller = encoded.bytes > 0;
  if (!smaller) encoded.reason = Reason::incompressible;
  job.policy.encoded(spec.codec, message.bytes, smaller ? encoded.bytes : message.bytes,
                     encoded.took_ns);
  return encoded;
}

}  // namespace

memory::Buffer pack_elements(Job& job, const SendArguments& arguments, std::size_t bytes) {
  memory::Buffer packed = job.pool.take(bytes);
  const std::shared_ptr<TypeInfo> type = type_info(arguments.type);
  if (packed && type && type->contiguous) {
    std::memcpy(packed.data(), arguments.buffer, bytes);
    return packed;
  }
  if (!packed || !type) return {};
  int code = MPI_SUCCESS;
  if (arguments.buffer == MPI_BOTTOM) {
    const auto count = static_cast<MPI_Count>(bytes / type->packed_unit());
    code = relayout(job, arguments.buffer, {arguments.count, arguments.type}, packed.data(),
                    {count, type->packed_type()});
  } else {
    code = link::counted::Pack(arguments.buffer, arguments.count, arguments.type, packed.data(),
                               static_cast<MPI_Count>(bytes), arguments.comm);
  }
  if (code != MPI_SUCCESS) return {};
  return packed;
}

Outgoing prepare_send(Job& job, trace::Op op, const SendArguments& arguments) {
  Outgoing outgoing;
  outgoing.arguments = arguments;
  if (arguments.destination < 0 || arguments.count < 0) return outgoing;
  outgoing.row = count_short(job, op, arguments);
  if (outgoing.row) return outgoing;
  const std::shared_ptr<TypeInfo> type = type_info(arguments.type);
  const std::shared_ptr<CommInfo> comm = type ? comm_info(arguments.comm) : nullptr;
  if (!comm || is_refused(arguments, *type)) return outgoing;

  const std::size_t bytes = bytes_of(arguments, *type);
  const Message message{op,   arguments, *type, *comm, comm->world_rank(arguments.destination),
                        bytes};

  Reason reason = Reason::none;
  const Spec spec = choose(job, message, reason);
  if (spec.codec == Codec::none) {
    outgoing.row = &count_message(job, message, Codec::none, reason, bytes);
    return outgoing;
  }
  std::string error;
  if (!validate_spec(spec, *type->element, error)) {
    trace::say("rank " + std::to_string(job.rank) + ": " + error);
    outgoing.error = comm->raise(job.spec_code);
    return outgoing;
  }

  Encoded encoded = encode(job, message, spec);
  const bool compressed = encoded.bytes > 0;
  outgoing.row = &count_message(job, message, compressed ? spec.codec : Codec::none, encoded.reason,
                                compressed ? encoded.bytes : bytes, encoded.chunks != nullptr);
  trace::add(outgoing.row->encode_ns, encoded.took_ns);
  if (!compressed) return outgoing;
  outgoing.frame = std::move(encoded.frame);
  outgoing.chunks = std::move(encoded.chunks);
  outgoing.arguments.buffer = outgoing.frame.data();
  outgoing.arguments.type = type->packed_type();
  outgoing.arguments.count = static_cast<MPI_Count>(encoded.bytes / element_size(*type->element));
  return outgoing;
}

void send_chunks(Job& job, Outgoing& outgoing) {
  if (!outgoing.chunks) return;
  outgoing.chunks->send(job, *outgoing.row);
  outgoing.chunks.reset();
}

int start_send(Job& job, Outgoing& outgoing, ImmediateSend send, int tag, MPI_Request* request) {
  const SendArguments& use = outgoing.arguments;
  const int code = send(use.buffer, use.count, use.type, use.destination, tag, use.comm, request);
  if (code == MPI_SUCCESS) send_chunks(job, outgoing);
  return code;
}

}  // namespace mpress::engine
