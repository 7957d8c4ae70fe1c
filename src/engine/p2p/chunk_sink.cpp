#include "engine/p2p/chunk_sink.hpp"

#include <cstring>
#include <string>

#include "codec/codec.hpp"
#include "engine/job.hpp"
#include "engine/p2p/chunk_events.hpp"
#include "trace/message.hpp"

namespace mpress::engine {
namespace {

/// Room for one chunk.
memory::Buffer room_for_chunk(Job& job, const wire::Header& header) {
  memory::Buffer room = job.pool.take(header.chunk_raw_bytes(0));
  if (!room) {
    mpi::fatal("rank " + std::to_string(job.rank) + ": no memory to receive a chunk of " +
               std::to_string(header.chunk_bytes) + " bytes");
  }
  return room;
}

class HostSink final : public ChunkSink {
 public:
  HostSink(Job& job, const wire::Header& header, int source, std::byte* elements)
      : ChunkSink(header, source), elements_(elements), aside_(room_for_chunk(job, header)) {}

  std::byte* place_of(Job&, std::uint64_t chunk) override {
    return elements_ + chunk * header_.chunk_bytes;
  }

  void take(Job& job, std::uint64_t chunk, const std::byte* data, std::size_t bytes,
            bool /*is_near*/) override {
    const std::size_t raw_bytes = header_.chunk_raw_bytes(chunk);
    taken_ = chunk + 1;
    if (bytes == raw_bytes || code_ != MPI_SUCCESS) return;
    const std::uint64_t begin = trace::now_ns();
    std::byte* place = place_of(job, chunk);
    std::memcpy(aside_.data(), data, bytes);
    const Status status = codec::decode(header_.spec, header_.type, aside_.data(), bytes, place,
                                        raw_bytes / element_size(header_.type));
    decode_ns_ += trace::now_ns() - begin;
    note_chunk(trace::Kind::decode, header_, source_, chunk, begin, bytes);
    note(job, chunk, status);
  }

  std::uint64_t settled(Job&) override { return taken_; }

 private:
  std::byte* elements_;
  memory::Buffer aside_;
  std::uint64_t taken_ = 0;
};

/// Every chunk goes the same place, so MPI gets it for one at a time.
class NoSink final : public ChunkSink {
 public:
  NoSink(Job& job, const wire::Header& header, int source)
      : ChunkSink(header, source), nowhere_(room_for_chunk(job, header)) {}
  std::byte* place_of(Job&, std::uint64_t chunk) override {
    return chunk == taken_ ? nowhere_.data() : nullptr;
  }
  void take(Job&, std::uint64_t, const std::byte*, std::size_t, bool) override { ++taken_; }
  std::uint64_t settled(Job&) override { return taken_; }

 private:
  memory::Buffer nowhere_;
  std::uint64_t taken_ = 0;
};

}  // namespace

void ChunkSink::note(Job& job, std::uint64_t chunk, Status status) {
  if (status == Status::ok || code_ != MPI_SUCCESS) return;
  code_ = job.corrupt_code;
  const bool payloads_tell = header_.spec.codec == Codec::szp && header_.spec.value == 0;
  trace::say("rank " + std::to_string(job.rank) + ": chunk " + std::to_string(chunk) + " of " +
             std::to_string(header_.chunks()) + " from rank " + std::to_string(source_) + " (" +
             (payloads_tell ? "szp" : to_string(header_.spec)) + ", " +
             std::to_string(header_.count) + " " + element_name(header_.type) +
             " elements) is corrupt: " + status_text(status));
}

std::unique_ptr<ChunkSink> host_sink(Job& job, const wire::Header& header, int source,
                                     std::byte* elements) {
  return std::make_unique<HostSink>(job, header, source, elements);
}

std::unique_ptr<ChunkSink> no_sink(Job& job, const wire::Header& header, int source) {
  return std::make_unique<NoSink>(job, header, source);
}

}  // namespace mpress::engine
