#include "engine/chunk_send.hpp"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "codec/codec.hpp"
#include "engine/chunk_events.hpp"
#include "engine/job.hpp"
#include "engine/send_message.hpp"

namespace mpress::engine {
namespace {

class HostChunks final : public ChunkSource {
 public:
  HostChunks(const wire::Header& header, int peer, const void* elements)
      : header_(header), peer_(peer), elements_(static_cast<const std::byte*>(elements)) {}

  /// All memory at once, so that no later chunk lacks it. False where it is short.
  bool open(Job& job) {
    buffers_.resize(header_.chunks());
    const std::size_t room = codec::max_payload_bytes(
        header_.spec, header_.type, header_.chunk_bytes / element_size(header_.type));
    for (memory::Buffer& buffer : buffers_) {
      buffer = job.pool.take(room);
      if (!buffer) return false;
    }
    return true;
  }

  Chunk take(Job&, std::uint64_t chunk) override {
    const std::size_t raw_bytes = header_.chunk_raw_bytes(chunk);
    const std::byte* elements = elements_ + chunk * header_.chunk_bytes;
    const std::uint64_t begin = trace::timeline.now();
    Chunk taken{std::move(buffers_[chunk]), 0};
    taken.bytes = codec::encode(header_.spec, header_.type, elements,
                                raw_bytes / element_size(header_.type), taken.data.data());
    if (taken.bytes >= raw_bytes) {
      std::memcpy(taken.data.data(), elements, raw_bytes);
      taken.bytes = raw_bytes;
    }
    note_chunk(trace::Kind::encode, header_, peer_, chunk, begin, taken.bytes);
    return taken;
  }

 private:
  const wire::Header header_;
  const int peer_;
  const std::byte* elements_;
  std::vector<memory::Buffer> buffers_;
};

/// Elements on a device take longer chunks: a device works on a short one alone no faster.
std::size_t chunk_bytes_of(const Job& job, const Elements& elements) {
  const std::size_t base = job.chunks.chunk_bytes();
  if (elements.device == gpu::host) return base;
  const std::size_t bases = elements.count * element_size(elements.type) / base;
  const std::size_t factor = bases >= 32 ? 4 : bases >= 8 ? 2 : 1;
  return std::min(factor * base, wire::max_chunk_bytes);
}

}  // namespace

std::unique_ptr<ChunkSend> ChunkSend::plan(Job& job, const Message& message, const Spec& spec,
                                           Elements& elements) {
  const std::uint64_t begin = trace::now_ns();
  std::unique_ptr<ChunkSend> chunks(new ChunkSend);
  wire::Header& header = chunks->header_;
  header.type = elements.type;
  header.count = elements.count;
  header.chunk_bytes = static_cast<std::uint32_t>(chunk_bytes_of(job, elements));
  const std::size_t in_chunk = header.chunk_bytes / element_size(elements.type);
  const std::size_t room = std::max<std::size_t>(
      header.chunk_bytes, codec::max_payload_bytes(spec, elements.type, in_chunk));
  if (!job.chunks.outbox.has_room(header.chunks() * room, job.config.pool_limit)) return nullptr;
  chunks->peer_ = message.peer;
  chunks->message_ = job.chunks.next_message();
  header.chunk_tag = static_cast<std::uint32_t>(job.chunks.tag_of(chunks->message_));
  if (spec.codec != Codec::none) chunks->subject_ = subject_of(job, message, spec.codec);
  if (elements.device != gpu::host) {
    header.spec = spec;
    if (spec.codec != Codec::none) {
      const LaneUse lane = job.devices.lane(elements.device);
      if (!lane) return nullptr;
      header.spec = lane->resolve(spec, elements.type, elements.data, elements.count);
    }
    chunks->source_ = device_chunks(job, header, message.peer, elements);
    // What a device refuses is an error of the call while nothing is announced.
    if (chunks->source_) chunks->first_ = chunks->source_->take(job, 0);
    if (!chunks->first_.data) return nullptr;
  } else {
    header.spec = codec::resolve(spec, elements.type, elements.data, elements.count);
    auto source = std::make_unique<HostChunks>(header, message.peer, elements.data);
    if (!source->open(job)) return nullptr;
    chunks->first_ = source->take(job, 0);
    // The header must not make the message larger than it was.
    if (chunks->first_.bytes + wire::min_frame_bytes > header.chunk_bytes) return nullptr;
    chunks->source_ = std::move(source);
  }
  chunks->source_->keep(std::move(elements.packed));
  chunks->first_ns_ = trace::now_ns() - begin;
  return chunks;
}

std::size_t ChunkSend::send(Job& job, trace::Row& row) {
  std::size_t sent_bytes = 0;
  std::uint64_t took_ns = first_ns_;
  for (std::uint64_t index = 0; index < header_.chunks(); ++index) {
    const std::uint64_t begin = trace::now_ns();
    Chunk chunk = index == 0 && first_.data ? std::move(first_) : source_->take(job, index);
    took_ns += trace::now_ns() - begin;
    const std::size_t bytes = chunk.bytes;
    const std::uint64_t handed = trace::timeline.now();
    MPI_Request request = MPI_REQUEST_NULL;
    const int code =
        !chunk.data
            ? MPI_ERR_NO_MEM
            : link::mpi().Isend(chunk.data.data(), static_cast<int>(bytes), MPI_BYTE, peer_,
                                static_cast<int>(header_.chunk_tag), job.chunks.comm(), &request);
    if (code != MPI_SUCCESS) {
      // It has been announced: the receiver would wait for ever.
      link::fatal("rank " + std::to_string(job.rank) + ": chunk " + std::to_string(index) +
                  " of a message to rank " + std::to_string(peer_) + " cannot be " +
                  (chunk.data ? "sent: MPI refused" : "made: no memory, or a device failed"));
    }
    trace::Event on_wire = chunk_event(trace::Kind::wire, header_, peer_, index, handed);
    on_wire.wire_bytes = bytes;
    job.chunks.outbox.add({request, std::move(chunk.data), message_, peer_, on_wire});
    sent_bytes += bytes;
  }
  source_.reset();
  trace::add(row.wire_bytes, sent_bytes);
  trace::add(row.encode_ns, took_ns);
  if (subject_) job.policy.encoded(*subject_, sent_bytes + wire::min_frame_bytes, took_ns);
  return sent_bytes;
}

}  // namespace mpress::engine
