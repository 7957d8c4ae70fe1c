#include "engine/chunk_send.hpp"

#include "codec/codec.hpp"
#include "engine/job.hpp"
#include "engine/send_message.hpp"

namespace mpress::engine {

void ChunkSend::describe(Job& job, const Message& message, const Spec& spec,
                         const Elements& elements, std::size_t chunk_bytes) {
  header_.type = elements.type;
  header_.count = elements.count;
  header_.chunk_bytes = static_cast<std::uint32_t>(chunk_bytes);
  header_.spec = spec;
  peer_ = message.peer;
  message_ = job.chunks.next_message();
  header_.chunk_tag = static_cast<std::uint32_t>(job.chunks.tag_of(message_));
  if (spec.codec != Codec::none) subject_ = subject_of(job, message, spec.codec);
}

bool ChunkSend::resolve(Job& job, const Elements& elements) {
  const Spec spec = header_.spec;
  if (spec.codec == Codec::none) return true;
  if (elements.device == gpu::host) {
    header_.spec = codec::resolve(spec, elements.type, elements.data, elements.count);
    return true;
  }
  const LaneUse lane = job.devices.lane(elements.device);
  if (!lane) return false;
  header_.spec = lane->resolve(spec, elements.type, elements.data, elements.count);
  return true;
}

void ChunkSend::count(Job& job, trace::Row& row, std::uint64_t took_ns) const {
  trace::add(row.wire_bytes, sent_bytes_);
  trace::add(row.encode_ns, took_ns);
  if (subject_) job.policy.encoded(*subject_, sent_bytes_ + wire::min_frame_bytes, took_ns);
}

}  // namespace mpress::engine
