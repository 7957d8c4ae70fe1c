#include "engine/p2p/chunk_send.hpp"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "codec/codec.hpp"
#include "engine/backoff.hpp"
#include "engine/job.hpp"
#include "engine/p2p/chunk_events.hpp"
#include "engine/p2p/send_message.hpp"

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

  bool encodes_here() const override { return true; }

  gpu::State take(Job&, Chunk& taken) override {
    const std::uint64_t chunk = taken_++;
    const std::size_t raw_bytes = header_.chunk_raw_bytes(chunk);
    const std::byte* elements = elements_ + chunk * header_.chunk_bytes;
    const std::uint64_t begin = trace::timeline.now();
    taken.data = std::move(buffers_[chunk]);
    taken.bytes = codec::encode(header_.spec, header_.type, elements,
                                raw_bytes / element_size(header_.type), taken.data.data());
    if (taken.bytes >= raw_bytes) {
      std::memcpy(taken.data.data(), elements, raw_bytes);
      taken.bytes = raw_bytes;
    }
    note_chunk(trace::Kind::encode, header_, peer_, chunk, begin, taken.bytes);
    return gpu::State::done;
  }

 private:
  const wire::Header header_;
  const int peer_;
  const std::byte* elements_;
  std::vector<memory::Buffer> buffers_;
  std::uint64_t taken_ = 0;
};

class MpiChunkSend final : public ChunkSend {
 public:
  bool plan(Job& job, const Message& message, const Spec& spec, Elements& elements);
  trace::Way way() const override { return trace::Way::chunks; }
  bool advance(Job& job, trace::Row& row, bool waits_for_more) override;

 private:
  std::unique_ptr<ChunkSource> source_;
};

/// A long message in device memory takes longer chunks: a device works on a short one alone no
/// faster.
std::size_t lengthened(std::size_t base, const Message& message) {
  if (message.device == gpu::host) return base;
  const std::size_t bases = message.bytes / base;
  const std::size_t factor = bases >= 32 ? 4 : bases >= 8 ? 2 : 1;
  return std::min(factor * base, wire::max_chunk_bytes);
}

bool MpiChunkSend::plan(Job& job, const Message& message, const Spec& spec, Elements& elements) {
  const std::uint64_t begin = trace::now_ns();
  describe(job, message, spec, elements, lengthened(mpi_chunk_bytes(job, message), message));
  const std::size_t room = std::max<std::size_t>(
      header_.chunk_bytes,
      codec::max_payload_bytes(spec, elements.type,
                               header_.chunk_bytes / element_size(elements.type)));
  if (!job.chunks.outbox.has_room(header_.chunks() * room, job.config.pool_limit)) return false;
  if (!resolve(job, elements)) return false;
  Chunk first;
  if (elements.device != gpu::host) {
    source_ = device_chunks(job, header_, message.peer, elements);
    // What a device refuses is an error of the call while nothing is announced.
    if (!source_ || !take_first(job, *source_, first)) return false;
  } else {
    source_ = host_chunks(job, header_, message.peer, elements);
    if (!source_) return false;
    source_->take(job, first);
    // The header must not make the message larger than it was.
    if (first.bytes + wire::min_frame_bytes > header_.chunk_bytes) return false;
  }
  begin_with(std::move(first));
  source_->keep(std::move(elements.packed));
  took_ns_ = trace::now_ns() - begin;
  return true;
}

bool MpiChunkSend::advance(Job& job, trace::Row& row, bool /*waits_for_more*/) {
  if (!source_) return true;
  if (!send_by_mpi(job, *source_)) return false;
  source_.reset();
  count(job, row);
  return true;
}

}  // namespace

std::unique_ptr<ChunkSource> host_chunks(Job& job, const wire::Header& header, int peer,
                                         const Elements& elements) {
  auto chunks = std::make_unique<HostChunks>(header, peer, elements.data);
  if (!chunks->open(job)) return nullptr;
  return chunks;
}

bool take_first(Job& job, ChunkSource& source, Chunk& chunk) {
  gpu::State state = gpu::State::pending;
  for (Backoff backoff; (state = source.take(job, chunk)) == gpu::State::pending;) {
    backoff.pause();
  }
  return state == gpu::State::done;
}

std::size_t mpi_chunk_bytes(const Job& job, const Message& message) {
  const ChunkLink& link = job.chunks;
  if (!link.is_open()) return 0;
  const std::size_t usual = message.device == gpu::host
                                ? link.chunk_bytes()
                                : link.device_chunk_bytes(job.peer_hosts.peer(message.peer));
  const std::size_t bytes = message.comm.hints.chunk(usual);
  // The receiver must not take it for one that comes in one piece.
  return bytes == 0 ? 0 : std::max(bytes, link.least_chunk_bytes());
}

std::unique_ptr<ChunkSend> plan_chunks(Job& job, const Message& message, const Spec& spec,
                                       Elements& elements) {
  auto chunks = std::make_unique<MpiChunkSend>();
  if (!chunks->plan(job, message, spec, elements)) return nullptr;
  return chunks;
}

}  // namespace mpress::engine
