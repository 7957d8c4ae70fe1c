// Chunks of messages in device memory. Encoding, the copy between device and host, and MPI overlap:
// each works on another chunk.

#include <sched.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "codec/codec.hpp"
#include "engine/job.hpp"
#include "engine/p2p/chunk_events.hpp"
#include "engine/p2p/chunk_send.hpp"
#include "engine/p2p/chunk_sink.hpp"
#include "engine/p2p/chunk_source.hpp"

namespace mpress::engine {
namespace {

constexpr std::size_t encoding_ahead = 4;  ///< chunks
constexpr std::size_t copying_ahead = 3;
constexpr std::size_t receiving_ahead = 8;  ///< from MPI, in pinned memory
constexpr std::size_t taking_ahead = 16;    ///< pieces of work
constexpr std::size_t decoding_queues = 2;  ///< one copies while the other decodes

class DeviceChunks final : public ChunkSource {
 public:
  DeviceChunks(const wire::Header& header, int peer, const Elements& elements)
      : header_(header),
        peer_(peer),
        device_(elements.device),
        elements_(static_cast<const std::byte*>(elements.data)),
        work_(header.chunks()) {
    for (std::uint64_t chunk = 0; chunk < work_.size(); ++chunk) {
      work_[chunk].from = place_of(chunk);
      work_[chunk].chunk.bytes = header.chunk_raw_bytes(chunk);
    }
  }

  /// False where memory or a queue is lacking.
  bool open(Job& job) {
    copying_ = job.devices.queue(device_);
    if (!copying_) return false;
    if (!encodes()) return true;
    encoding_ = job.devices.queue(device_);
    const std::size_t room = codec::max_payload_bytes(header_.spec, header_.type, elements_in(0));
    for (memory::Buffer& payload : payloads_) {
      payload = job.devices.take(device_, room);
      if (!payload) return false;
    }
    return static_cast<bool>(encoding_);
  }

  gpu::State take(Job& job, Chunk& chunk) override {
    start_encoding();
    while (copied_ < work_.size() && copied_ <= taken_ + copying_ahead && start_copying(job)) {
    }
    if (code_ != MPI_SUCCESS) return gpu::State::failed;
    if (taken_ == copied_) return gpu::State::pending;
    Work& work = work_[taken_];
    const gpu::State state = copying_->query(work.copied);
    if (state == gpu::State::failed) code_ = refused(job, device_);
    if (state != gpu::State::done) return state;
    note(trace::Kind::copy_out, taken_, work.copying_ns);
    chunk = std::move(work.chunk);
    ++taken_;
    start_encoding();
    return gpu::State::done;
  }

 private:
  struct Work {
    gpu::Event encoded = 0;
    gpu::Event copied = 0;
    std::uint64_t encoding_ns = 0;  ///< when each was given to its queue
    std::uint64_t copying_ns = 0;
    bool is_encoded = false;
    const std::byte* from = nullptr;  ///< what is to be copied
    Chunk chunk;
  };

  bool encodes() const { return header_.spec.codec != Codec::none; }
  std::size_t elements_in(std::uint64_t chunk) const {
    return header_.chunk_raw_bytes(chunk) / element_size(header_.type);
  }
  const std::byte* place_of(std::uint64_t chunk) const {
    return elements_ + chunk * header_.chunk_bytes;
  }

  void note(trace::Kind kind, std::uint64_t chunk, std::uint64_t begin_ns) const {
    note_chunk(kind, header_, peer_, chunk, begin_ns, work_[chunk].chunk.bytes, device_);
  }

  /// Payloads of chunks that were taken have been copied, so their buffers are free.
  void start_encoding() {
    if (!encodes()) return;
    for (; encoded_ < work_.size() && encoded_ < taken_ + payloads_.size(); ++encoded_) {
      work_[encoded_].encoding_ns = trace::timeline.now();
      work_[encoded_].encoded =
          encoding_->encode(header_.spec, header_.type, place_of(encoded_), elements_in(encoded_),
                            payloads_[encoded_ % payloads_.size()].data());
    }
  }

  /// The next chunk, to the host. False where it is not encoded yet, or there is no memory for it
  /// now.
  bool start_copying(Job& job) {
    const std::uint64_t chunk = copied_;
    Work& work = work_[chunk];
    if (encodes() && !work.is_encoded && !look_at_encoder(job, chunk)) return false;
    work.chunk.data = job.devices.take_pinned(device_, work.chunk.bytes);
    if (!work.chunk.data) {
      // No send waits for a receiver to give memory back.
      if (taken_ == copied_) code_ = MPI_ERR_NO_MEM;
      return false;
    }
    work.copying_ns = trace::timeline.now();
    work.copied = copying_->copy(work.chunk.data.data(), work.from, work.chunk.bytes);
    copied_ = chunk + 1;
    return true;
  }

  /// Is it encoded? A device that refuses is an error of the message.
  bool look_at_encoder(Job& job, std::uint64_t chunk) {
    Work& work = work_[chunk];
    if (chunk >= encoded_) return false;
    gpu::Outcome outcome;
    const gpu::State state = encoding_->query(work.encoded, &outcome);
    if (state == gpu::State::failed) code_ = refused(job, device_);
    if (state != gpu::State::done) return false;
    if (outcome.bytes < work.chunk.bytes) {
      work.from = payloads_[chunk % payloads_.size()].data();
      work.chunk.bytes = outcome.bytes;
    }
    work.is_encoded = true;
    note(trace::Kind::encode, chunk, work.encoding_ns);
    return true;
  }

  const wire::Header header_;
  const int peer_;
  const int device_;
  const std::byte* elements_;
  std::array<memory::Buffer, encoding_ahead> payloads_;
  std::vector<Work> work_;
  std::uint64_t encoded_ = 0;  ///< chunks whose encoding has begun
  std::uint64_t copied_ = 0;   ///< chunks whose copy has begun
  std::uint64_t taken_ = 0;
  // Destroyed first: what is under way uses the buffers above.
  QueueLease encoding_;
  QueueLease copying_;
};

class DeviceSink final : public ChunkSink {
 public:
  DeviceSink(const wire::Header& header, int source, int device, std::byte* elements)
      : ChunkSink(header, source), device_(device), elements_(elements) {}

  bool open(Job& job, bool is_near) {
    for (QueueLease& queue : queues_) {
      queue = job.devices.queue(device_, gpu::Priority::first);
      if (!queue) return false;
    }
    const bool decodes = header_.spec.codec != Codec::none;
    return !decodes || is_near || take_rooms(job);
  }

  bool reads_devices() const override { return true; }

  bool has_room(Job& job) override {
    settle(job);
    return given_ < done_ + pieces_.size();
  }

  std::byte* place_of(Job& job, std::uint64_t chunk, std::size_t) override {
    while (given_back_ < settled(job)) free_rooms_.push_back(room_of(given_back_++));
    if (chunk < placed_) return rooms_[room_of(chunk)].data();
    if (placed_ == given_back_ + receiving_ahead) return nullptr;
    if (free_rooms_.empty()) {
      memory::Buffer room = job.devices.take_pinned(device_, header_.chunk_raw_bytes(0));
      if (!room) return nullptr;  // those that there are serve, or there will be one
      free_rooms_.push_back(rooms_.size());
      rooms_.push_back(std::move(room));
    }
    room_of(placed_++) = free_rooms_.back();
    free_rooms_.pop_back();
    return rooms_[room_of(chunk)].data();
  }

  void take(Job& job, std::uint64_t chunk, const Landed& landed) override {
    const std::size_t queue_number = chunk % queues_.size();
    const QueueLease& queue = queues_[queue_number];
    std::byte* place = elements_ + chunk * header_.chunk_bytes;
    const std::size_t raw_bytes = header_.chunk_raw_bytes(chunk);
    const std::byte* data = landed.data;
    Piece& piece = begin_piece(chunk, 1, queue_number, landed.bytes);
    if (!landed.is_encoded) {
      piece.event = queue->copy(place, data, raw_bytes);
      return;
    }
    piece.is_encoded = true;
    if (!landed.is_near) {
      if (!take_rooms(job)) {
        if (code_ == MPI_SUCCESS) code_ = MPI_ERR_NO_MEM;
        return;
      }
      // What lies there has been decoded by then: the queue works in order.
      std::byte* const payload = payloads_[queue_number].data();
      queue->copy(payload, data, landed.bytes);
      data = payload;
    }
    piece.event = queue->decode(header_.spec, header_.type, data, landed.bytes, place,
                                raw_bytes / element_size(header_.type));
  }

  void skip(Job&, std::uint64_t chunk) override { begin_piece(chunk, 1, 0, 0); }

  void take_raw(Job&, std::uint64_t first, std::uint64_t chunks, const std::byte* data,
                std::size_t bytes, std::uint32_t* flag) override {
    const std::size_t queue_number = given_ % queues_.size();
    const QueueLease& queue = queues_[queue_number];
    Piece& piece = begin_piece(first, chunks, queue_number, bytes);
    piece.event = queue->copy(elements_ + first * header_.chunk_bytes, data, bytes, flag);
  }

  std::uint64_t settled(Job& job) override {
    settle(job);
    return settled_;
  }

  void drain() override {
    for (const QueueLease& queue : queues_) queue->drain();
  }

 private:
  /// Work of a queue: one chunk, or several that are copied at once.
  struct Piece {
    std::uint64_t first = 0;
    std::uint64_t chunks = 0;
    std::size_t queue = 0;
    gpu::Event event = 0;  ///< 0: nothing to be done
    std::size_t bytes = 0;
    std::uint64_t given_ns = 0;
    bool is_encoded = false;
  };

  std::size_t& room_of(std::uint64_t chunk) { return room_numbers_[chunk % room_numbers_.size()]; }

  /// Memory of the device for payloads, once; false where it has none.
  bool take_rooms(Job& job) {
    for (memory::Buffer& payload : payloads_) {
      if (!payload) payload = job.devices.take(device_, room_for_chunk(header_));
      if (!payload) return false;
    }
    return true;
  }

  Piece& begin_piece(std::uint64_t first, std::uint64_t chunks, std::size_t queue,
                     std::size_t bytes) {
    if (done_ == given_) began_ns_ = trace::now_ns();
    Piece& piece = pieces_[given_++ % pieces_.size()];
    piece = {first, chunks, queue, 0, bytes, trace::timeline.now()};
    return piece;
  }

  void settle(Job& job) {
    if (done_ == given_) return;
    for (; done_ < given_; ++done_) {
      const Piece& piece = pieces_[done_ % pieces_.size()];
      if (piece.event != 0) {
        gpu::Outcome outcome;
        const gpu::State state = queues_[piece.queue]->query(piece.event, &outcome);
        if (state == gpu::State::pending) return;
        if (state == gpu::State::failed && code_ == MPI_SUCCESS) code_ = refused(job, device_);
        if (state == gpu::State::done) note(job, piece.first, outcome.status);
        note_piece(piece);
      }
      settled_ = piece.first + piece.chunks;
    }
    if (header_.spec.codec != Codec::none) decode_ns_ += trace::now_ns() - began_ns_;
  }

  void note_piece(const Piece& piece) const {
    if (!trace::timeline.is_on()) return;
    for (std::uint64_t chunk = piece.first; chunk < piece.first + piece.chunks; ++chunk) {
      const std::size_t raw_bytes = header_.chunk_raw_bytes(chunk);
      const std::size_t bytes = piece.chunks > 1 ? raw_bytes : piece.bytes;
      note_chunk(piece.is_encoded ? trace::Kind::decode : trace::Kind::copy_in, header_, source_,
                 chunk, piece.given_ns, bytes, device_);
    }
  }

  const int device_;
  std::byte* elements_;
  std::array<memory::Buffer, decoding_queues> payloads_;
  std::vector<memory::Buffer> rooms_;  ///< in pinned memory
  std::vector<std::size_t> free_rooms_;
  std::array<std::size_t, receiving_ahead> room_numbers_{};  ///< by chunk
  std::uint64_t placed_ = 0;                                 ///< chunks that got a room
  std::uint64_t given_back_ = 0;                             ///< chunks whose room is free again
  std::array<Piece, taking_ahead> pieces_;
  std::uint64_t given_ = 0;     ///< pieces
  std::uint64_t done_ = 0;      ///< pieces
  std::uint64_t settled_ = 0;   ///< chunks
  std::uint64_t began_ns_ = 0;  ///< when the queues got work after they had none
  std::array<QueueLease, decoding_queues> queues_;  ///< destroyed first: see DeviceChunks
};

}  // namespace

std::unique_ptr<ChunkSource> device_chunks(Job& job, const wire::Header& header, int peer,
                                           const Elements& elements) {
  auto chunks = std::make_unique<DeviceChunks>(header, peer, elements);
  if (!chunks->open(job)) return nullptr;
  return chunks;
}

std::unique_ptr<ChunkSink> device_sink(Job& job, const wire::Header& header, int source, int device,
                                       std::byte* elements, bool is_near) {
  auto sink = std::make_unique<DeviceSink>(header, source, device, elements);
  if (!sink->open(job, is_near)) return nullptr;
  return sink;
}

}  // namespace mpress::engine
