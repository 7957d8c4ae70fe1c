// Messages in host memory become frames.

#include <cstring>

#include "codec/codec.hpp"
#include "engine/job.hpp"
#include "engine/p2p/send_message.hpp"
#include "mpi/counted.hpp"
#include "mpi/relayout.hpp"

namespace mpress::engine {
namespace {

using trace::Reason;

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

}  // namespace

std::size_t close_frame(Job& job, const wire::Header& header, memory::Buffer& frame) {
  const std::size_t bytes = wire::frame_bytes(header.payload_bytes);
  const std::size_t used = wire::header_bytes + header.payload_bytes;
  wire::write_header(header, job.nonce, frame.data());
  std::memset(frame.data() + used, 0, bytes - used);
  return bytes;
}

void note_encoded(Job& job, const Message& message, const Spec& spec, Encoded& encoded) {
  const bool smaller = encoded.bytes > 0;
  if (!smaller) encoded.reason = Reason::incompressible;
  job.policy.encoded(subject_of(job, message, spec.codec), smaller ? encoded.bytes : message.bytes,
                     encoded.took_ns);
  if (!trace::timeline.is_on()) return;
  const std::uint64_t end = trace::now_ns();
  trace::timeline.note({.begin_ns = end - encoded.took_ns,
                        .end_ns = end,
                        .raw_bytes = message.bytes,
                        .wire_bytes = encoded.bytes,
                        .peer = message.peer,
                        .device = message.device,
                        .kind = trace::Kind::encode,
                        .codec = spec.codec,
                        .reason = encoded.reason});
}

Encoded encode(Job& job, const Message& message, const Spec& spec) {
  const std::uint64_t begin = trace::now_ns();
  const ElementType type = *message.type.element;
  const std::size_t count = message.bytes / element_size(type);
  Encoded encoded;
  encoded.reason = Reason::memory;
  Elements elements{type, message.arguments.buffer, count};
  if (!message.type.contiguous) {
    elements.packed = pack_elements(job, message.arguments, message.bytes);
    elements.data = elements.packed.data();
    if (!elements.packed) return encoded;
  }
  if (is_cut(job, message)) {
    encoded.data = plan_chunks(job, message, spec, elements);
  }
  const bool cut = encoded.data != nullptr;
  encoded.frame =
      job.pool.take(wire::frame_bytes(cut ? 0 : codec::max_payload_bytes(spec, type, count)));
  if (!encoded.frame) return encoded;
  encoded.reason = Reason::none;
  if (cut) {
    encoded.bytes = close_frame(job, encoded.data->header(), encoded.frame);
    return encoded;
  }
  encoded.bytes = write_frame(job, spec, type, elements.data, count, encoded.frame);
  encoded.took_ns = trace::now_ns() - begin;
  note_encoded(job, message, spec, encoded);
  return encoded;
}

memory::Buffer pack_elements(Job& job, const SendArguments& arguments, std::size_t bytes) {
  memory::Buffer packed = job.pool.take(bytes);
  const std::shared_ptr<mpi::TypeInfo> type = mpi::type_info(arguments.type);
  if (packed && type && type->contiguous && locate(job, arguments.buffer, *type).is_readable) {
    std::memcpy(packed.data(), arguments.buffer, bytes);
    return packed;
  }
  if (!packed || !type) return {};
  int code = MPI_SUCCESS;
  if (arguments.buffer == MPI_BOTTOM) {
    const auto count = static_cast<MPI_Count>(bytes / type->packed_unit());
    code = mpi::relayout(arguments.buffer, {arguments.count, arguments.type}, packed.data(),
                         {count, type->packed_type()});
  } else {
    code = mpi::counted::Pack(arguments.buffer, arguments.count, arguments.type, packed.data(),
                              static_cast<MPI_Count>(bytes), arguments.comm);
  }
  if (code != MPI_SUCCESS) return {};
  return packed;
}

}  // namespace mpress::engine
