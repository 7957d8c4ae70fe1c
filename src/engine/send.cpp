#include "engine/send.hpp"

#include <cstdio>
#include <cstring>
#include <string>

#include "codec/codec.hpp"
#include "engine/comm_info.hpp"
#include "engine/job.hpp"
#include "engine/type_info.hpp"
#include "link/counted.hpp"
#include "memory/kind.hpp"

namespace mpress::engine {
namespace {

using trace::Reason;

/// The codec for this message; none where it is left raw, and then `reason` says why.
Codec choose(Job& job, const SendArguments& arguments, const TypeInfo& type, int peer,
             std::size_t bytes, Reason& reason) {
  const Codec wanted =
      job.config.spec.codec == Codec::automatic ? Codec::mpc : job.config.spec.codec;
  if (bytes < job.config.threshold || bytes < wire::min_frame_bytes) {
    reason = Reason::threshold;
  } else if (!type.element) {
    reason = Reason::type;
  } else if (peer == trace::any_peer) {
    reason = Reason::communicator;
  } else if (wanted == Codec::none || job.config.p2p_disabled) {
    reason = Reason::disabled;
  } else if (memory::kind_of(arguments.buffer) == memory::Kind::device) {
    reason = Reason::device;
  } else if (!job.policy.worth_it(wanted, bytes)) {
    reason = Reason::policy;
  } else {
    return wanted;
  }
  return Codec::none;
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
  const std::size_t bytes = wire::frame_bytes(header.payload_bytes, type);
  if (bytes > header.raw_bytes()) return 0;
  wire::write_header(header, job.nonce, frame.data());
  const std::size_t used = wire::header_bytes + header.payload_bytes;
  std::memset(frame.data() + used, 0, bytes - used);
  return bytes;
}

}  // namespace

memory::Buffer pack_elements(Job& job, const SendArguments& arguments, std::size_t bytes) {
  memory::Buffer packed = job.pool.take(bytes);
  const std::shared_ptr<TypeInfo> type = type_info(arguments.type);
  if (packed && type && type->contiguous) {
    std::memcpy(packed.data(), arguments.buffer, bytes);
    return packed;
  }
  if (!packed) return {};
  const int code =
      link::counted::Pack(arguments.buffer, arguments.count, arguments.type, packed.data(),
                          static_cast<MPI_Count>(bytes), arguments.comm);
  if (code != MPI_SUCCESS) return {};
  return packed;
}

Outgoing prepare_send(Job& job, trace::Op op, const SendArguments& arguments) {
  Outgoing outgoing;
  outgoing.arguments = arguments;
  if (arguments.destination < 0 || arguments.count < 0) return outgoing;
  const std::shared_ptr<TypeInfo> type = type_info(arguments.type);
  const std::shared_ptr<CommInfo> comm = type ? comm_info(arguments.comm) : nullptr;
  if (!comm) return outgoing;

  const int peer = comm->world_rank(arguments.destination);
  const std::size_t bytes = static_cast<std::size_t>(arguments.count) * type->size;
  if (bytes > 0 && !arguments.buffer && type->contiguous) return outgoing;  // MPI will refuse
  const auto count_as = [&](Codec codec, Reason reason, std::size_t wire_bytes) {
    outgoing.row = &job.record.row({trace::Direction::send, op, peer, codec, reason});
    trace::add(outgoing.row->messages, 1);
    trace::add(outgoing.row->raw_bytes, bytes);
    trace::add(outgoing.row->wire_bytes, wire_bytes);
  };
  Reason reason = Reason::none;
  const Codec codec = choose(job, arguments, *type, peer, bytes, reason);
  if (codec == Codec::none) {
    count_as(Codec::none, reason, bytes);
    return outgoing;
  }

  Spec spec = job.config.spec;
  spec.codec = codec;
  std::string error;
  if (!validate_spec(spec, *type->element, error)) {
    std::fprintf(stderr, "mpress: rank %d: %s\n", job.rank, error.c_str());
    outgoing.error = comm->raise(job.spec_code);
    return outgoing;
  }

  const std::uint64_t begin = trace::now_ns();
  const std::size_t count = bytes / element_size(*type->element);
  memory::Buffer frame = job.pool.take(
      wire::frame_bytes(codec::max_payload_bytes(spec, *type->element, count), *type->element));
  memory::Buffer packed;
  if (frame && !type->contiguous) packed = pack_elements(job, arguments, bytes);
  if (!frame || (!type->contiguous && !packed)) {
    count_as(Codec::none, Reason::memory, bytes);
    return outgoing;
  }
  const void* elements = type->contiguous ? arguments.buffer : packed.data();
  const std::size_t frame_bytes = write_frame(job, spec, *type->element, elements, count, frame);
  const std::uint64_t took = trace::now_ns() - begin;
  if (frame_bytes == 0) {
    job.policy.encoded(codec, bytes, bytes, took);
    count_as(Codec::none, Reason::incompressible, bytes);
    trace::add(outgoing.row->encode_ns, took);
    return outgoing;
  }
  job.policy.encoded(codec, bytes, frame_bytes, took);
  count_as(codec, Reason::none, frame_bytes);
  trace::add(outgoing.row->encode_ns, took);

  outgoing.frame = std::move(frame);
  outgoing.arguments.buffer = outgoing.frame.data();
  outgoing.arguments.type = type->packed_type();
  outgoing.arguments.count = static_cast<MPI_Count>(frame_bytes / element_size(*type->element));
  return outgoing;
}

}  // namespace mpress::engine
