#include "engine/p2p/chunk_sink.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "codec/codec.hpp"
#include "engine/job.hpp"
#include "engine/p2p/chunk_events.hpp"
#include "trace/message.hpp"

namespace mpress::engine {
namespace {

class HostSink final : public ChunkSink {
 public:
  HostSink(const wire::Header& header, int source, std::byte* elements, memory::Buffer aside)
      : ChunkSink(header, source), elements_(elements), aside_(std::move(aside)) {}

  std::byte* place_of(Job&, std::uint64_t chunk, std::size_t bytes) override {
    if (bytes <= header_.chunk_raw_bytes(chunk)) return elements_of(chunk);
    return chunk == taken_ ? aside_.data() : nullptr;
  }

  void take(Job& job, std::uint64_t chunk, const Landed& landed) override {
    taken_ = chunk + 1;
    if (!landed.is_encoded || code_ != MPI_SUCCESS) return;
    const std::uint64_t begin = trace::now_ns();
    if (landed.data != aside_.data()) std::memcpy(aside_.data(), landed.data, landed.bytes);
    const std::size_t count = header_.chunk_raw_bytes(chunk) / element_size(header_.type);
    const Status status = codec::decode(header_.spec, header_.type, aside_.data(), landed.bytes,
                                        elements_of(chunk), count);
    decode_ns_ += trace::now_ns() - begin;
    note_chunk(trace::Kind::decode, header_, source_, chunk, begin, landed.bytes);
    note(job, chunk, status);
  }

  void skip(Job&, std::uint64_t chunk) override { taken_ = chunk + 1; }
  std::uint64_t settled(Job&) override { return taken_; }

 private:
  std::byte* elements_of(std::uint64_t chunk) const {
    return elements_ + chunk * header_.chunk_bytes;
  }

  std::byte* elements_;
  memory::Buffer aside_;
  std::uint64_t taken_ = 0;
};

/// Every chunk goes the same place, so MPI gets it for one at a time.
class NoSink final : public ChunkSink {
 public:
  using ChunkSink::ChunkSink;

  std::byte* place_of(Job& job, std::uint64_t chunk, std::size_t) override {
    if (!nowhere_) nowhere_ = job.pool.take(room_for_chunk(header_));
    return chunk == taken_ ? nowhere_.data() : nullptr;
  }
  void take(Job&, std::uint64_t, const Landed&) override { ++taken_; }
  void skip(Job&, std::uint64_t) override { ++taken_; }
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

std::size_t room_for_chunk(const wire::Header& header) {
  const std::size_t bytes = header.chunk_raw_bytes(0);
  if (header.spec.codec == Codec::none) return bytes;
  return std::max(
      bytes, codec::max_payload_bytes(header.spec, header.type, bytes / element_size(header.type)));
}

std::unique_ptr<ChunkSink> host_sink(Job& job, const wire::Header& header, int source,
                                     std::byte* elements) {
  memory::Buffer aside;
  if (header.spec.codec != Codec::none) {
    aside = job.pool.take(room_for_chunk(header));
    if (!aside) return nullptr;
  }
  return std::make_unique<HostSink>(header, source, elements, std::move(aside));
}

std::unique_ptr<ChunkSink> no_sink(const wire::Header& header, int source) {
  return std::make_unique<NoSink>(header, source);
}

}  // namespace mpress::engine
