#include "engine/chunk_send.hpp"

#include <cstring>
#include <string>
#include <utility>

#include "codec/codec.hpp"
#include "engine/job.hpp"

namespace mpress::engine {

std::unique_ptr<ChunkSend> ChunkSend::plan(Job& job, const Spec& spec, ElementType type,
                                           const void* elements, std::size_t count, int peer,
                                           memory::Buffer& packed) {
  const std::uint64_t begin = trace::now_ns();
  const std::size_t chunk_bytes = job.chunks.chunk_bytes();
  const std::size_t room = codec::max_payload_bytes(spec, type, chunk_bytes / element_size(type));
  std::unique_ptr<ChunkSend> chunks(new ChunkSend);
  wire::Header& header = chunks->header_;
  header.type = type;
  header.count = count;
  header.chunk_bytes = static_cast<std::uint32_t>(chunk_bytes);
  if (!job.chunks.outbox.has_room(header.chunks() * room, job.config.pool_limit)) return nullptr;
  chunks->buffers_.resize(header.chunks());
  for (memory::Buffer& buffer : chunks->buffers_) {
    buffer = job.pool.take(room);
    if (!buffer) return nullptr;
  }
  header.spec = codec::resolve(spec, type, elements, count);
  chunks->elements_ = static_cast<const std::byte*>(elements);
  chunks->peer_ = peer;
  chunks->first_bytes_ = chunks->encode(0);
  // The header must not make the message larger than it was.
  if (chunks->first_bytes_ + wire::min_frame_bytes > chunk_bytes) return nullptr;
  chunks->message_ = job.chunks.next_message();
  header.chunk_tag = static_cast<std::uint32_t>(job.chunks.tag_of(chunks->message_));
  chunks->packed_ = std::move(packed);
  chunks->first_ns_ = trace::now_ns() - begin;
  return chunks;
}

/// Returns the bytes in the chunk's buffer: fewer than its elements have, or those themselves.
std::size_t ChunkSend::encode(std::uint64_t chunk) {
  const std::size_t raw_bytes = header_.chunk_raw_bytes(chunk);
  const std::byte* elements = elements_ + chunk * header_.chunk_bytes;
  std::byte* out = buffers_[chunk].data();
  const std::size_t bytes = codec::encode(header_.spec, header_.type, elements,
                                          raw_bytes / element_size(header_.type), out);
  if (bytes < raw_bytes) return bytes;
  std::memcpy(out, elements, raw_bytes);
  return raw_bytes;
}

void ChunkSend::send(Job& job, trace::Row& row) {
  std::size_t sent_bytes = 0;
  std::uint64_t took_ns = first_ns_;
  for (std::uint64_t chunk = 0; chunk < buffers_.size(); ++chunk) {
    const std::uint64_t begin = trace::now_ns();
    const std::size_t bytes = chunk == 0 ? first_bytes_ : encode(chunk);
    took_ns += trace::now_ns() - begin;
    MPI_Request request = MPI_REQUEST_NULL;
    const int code =
        link::mpi().Isend(buffers_[chunk].data(), static_cast<int>(bytes), MPI_BYTE, peer_,
                          static_cast<int>(header_.chunk_tag), job.chunks.comm(), &request);
    if (code != MPI_SUCCESS) {
      link::fatal("rank " + std::to_string(job.rank) + ": MPI refused to send a chunk to rank " +
                  std::to_string(peer_));
    }
    job.chunks.outbox.add({request, std::move(buffers_[chunk]), message_, peer_});
    sent_bytes += bytes;
  }
  packed_.reset();
  trace::add(row.wire_bytes, sent_bytes);
  trace::add(row.encode_ns, took_ns);
  job.policy.encoded(header_.spec.codec, header_.raw_bytes(), sent_bytes + wire::min_frame_bytes,
                     took_ns);
}

}  // namespace mpress::engine
