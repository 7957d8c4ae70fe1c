#include "engine/p2p/chunk_send.hpp"

#include <string>
#include <utility>

#include "codec/codec.hpp"
#include "engine/job.hpp"
#include "engine/p2p/chunk_events.hpp"
#include "engine/p2p/send_message.hpp"

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
  const QueueLease queue = job.devices.queue(elements.device);
  if (!queue) return false;
  header_.spec = queue->resolve(spec, elements.type, elements.data, elements.count);
  return true;
}

std::uint64_t ChunkSend::send_by_mpi(Job& job, ChunkSource& source, Chunk first) {
  std::uint64_t took_ns = 0;
  for (std::uint64_t index = 0; index < header_.chunks(); ++index) {
    const std::uint64_t begin = trace::now_ns();
    Chunk chunk = index == 0 && first.data ? std::move(first) : source.take(job, index);
    took_ns += trace::now_ns() - begin;
    const std::size_t bytes = chunk.bytes;
    const std::uint64_t handed = trace::timeline.now();
    MPI_Request request = MPI_REQUEST_NULL;
    const int code =
        !chunk.data
            ? MPI_ERR_NO_MEM
            : mpi::calls().Isend(chunk.data.data(), static_cast<int>(bytes), MPI_BYTE, peer_,
                                 static_cast<int>(header_.chunk_tag), job.chunks.comm(), &request);
    if (code != MPI_SUCCESS) {
      // It has been announced: the receiver would wait for ever.
      mpi::fatal("rank " + std::to_string(job.rank) + ": chunk " + std::to_string(index) +
                 " of a message to rank " + std::to_string(peer_) + " cannot be " +
                 (chunk.data ? "sent: MPI refused" : "made: no memory, or a device failed"));
    }
    trace::Event on_wire = chunk_event(trace::Kind::wire, header_, peer_, index, handed);
    on_wire.wire_bytes = bytes;
    job.chunks.outbox.add({request, std::move(chunk.data), message_, peer_, on_wire});
    sent_bytes_ += bytes;
  }
  return took_ns;
}

void ChunkSend::count(Job& job, trace::Row& row, std::uint64_t took_ns) const {
  trace::add(row.wire_bytes, sent_bytes_);
  trace::add(row.encode_ns, took_ns);
  if (subject_) job.policy.encoded(*subject_, sent_bytes_ + wire::min_frame_bytes, took_ns);
}

}  // namespace mpress::engine
