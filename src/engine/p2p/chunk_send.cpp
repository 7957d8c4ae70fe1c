#include "engine/p2p/chunk_send.hpp"

#include <string>
#include <utility>

#include "codec/codec.hpp"
#include "engine/job.hpp"
#include "engine/p2p/chunk_events.hpp"
#include "engine/p2p/send_message.hpp"
#include "link/route.hpp"

namespace mpress::engine {

void ChunkSend::describe(Job& job, const Message& message, const Spec& spec,
                         const Elements& elements, std::size_t chunk_bytes) {
  header_.type = elements.type;
  header_.count = elements.count;
  header_.chunk_bytes = static_cast<std::uint32_t>(chunk_bytes);
  header_.spec = spec;
  peer_ = message.peer;
  message_ = job.chunks.next_message();
  header_.route =
      link::Route(static_cast<std::uint32_t>(job.chunks.tag_of(message_)), link::Kind::mpi, 0)
          .word();
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

bool ChunkSend::send_by_mpi(Job& job, ChunkSource& source) {
  while (handed_ < header_.chunks()) {
    Chunk chunk = std::move(first_);
    if (!chunk.data && code_ == MPI_SUCCESS) {
      const std::uint64_t begin = trace::now_ns();
      const gpu::State state = source.take(job, chunk);
      took_ns_ += trace::now_ns() - begin;
      if (state == gpu::State::pending) return false;
      if (state == gpu::State::failed) code_ = source.code();
    }
    hand_over(job, std::move(chunk));
    // Other operations have their turn between chunks that this very thread encodes.
    if (source.encodes_here()) break;
  }
  return handed_ == header_.chunks();
}

/// An empty one stands for a chunk that could not be made.
void ChunkSend::hand_over(Job& job, Chunk chunk) {
  const std::size_t bytes = chunk.data ? chunk.bytes : 0;
  const std::uint64_t handed_ns = trace::timeline.now();
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = mpi::calls().Isend(chunk.data.data(), static_cast<int>(bytes), MPI_BYTE, peer_,
                                      static_cast<int>(link::Route(header_.route).number),
                                      job.chunks.comm(), &request);
  if (code != MPI_SUCCESS) {  // nor can the receiver be told, which would wait for ever
    mpi::fatal("rank " + std::to_string(job.rank) + ": MPI refused to send chunk " +
               std::to_string(handed_) + " of a message to rank " + std::to_string(peer_));
  }
  trace::Event on_wire = chunk_event(trace::Kind::wire, header_, peer_, handed_, handed_ns);
  on_wire.wire_bytes = bytes;
  job.chunks.outbox.add({request, std::move(chunk.data), message_, peer_, on_wire});
  sent_bytes_ += bytes;
  ++handed_;
}

void ChunkSend::count(Job& job, trace::Row& row) const {
  trace::add(row.wire_bytes, sent_bytes_);
  if (code_ != MPI_SUCCESS) return;
  trace::add(row.encode_ns, took_ns_);
  if (subject_) job.policy.encoded(*subject_, sent_bytes_ + wire::min_frame_bytes, took_ns_);
}

}  // namespace mpress::engine
