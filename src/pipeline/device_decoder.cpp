// Chunks for a region on a device: copies to it and decoding overlap, each at another chunk.

#include <array>
#include <utility>
#include <vector>

#include "core/runtime.hpp"
#include "gpu/codec_queue.hpp"
#include "pipeline/decoder.hpp"
#include "pipeline/rooms.hpp"

namespace mpress::engine {
namespace {

constexpr std::size_t taking_ahead = 16;  ///< pieces of work
/// Those of several chunks, copied or decoded at once: one moves data while others begin or end.
/// What comes meanwhile makes the next one longer, and long ones use links and devices better. One
/// more may follow where has_room() promised one (take(), skip()).
constexpr std::size_t runs_ahead = 3;
constexpr std::size_t decoding_queues = 2;  ///< one copies while the other decodes
/// From memory of the host, where a copy takes longer than decoding and each begins late.
constexpr std::size_t queues_from_host = 4;
/// Of its own memory, for payloads that a device copies before it decodes them at once.
constexpr std::size_t run_room = 16 << 20;

class DeviceDecoder final : public Decoder {
 public:
  DeviceDecoder(Runtime& runtime, const Chunking& cut, int device, std::byte* elements, From from)
      : Decoder(runtime, cut),
        device_(device),
        elements_(elements),
        rooms_(runtime, device, from == From::rooms ? device : gpu::host, cut.raw_bytes(0)),
        payload_room_(from == From::host ? cut.room() : room_of_run()),
        queue_count_(std::min<std::uint64_t>(
            from == From::host ? queues_from_host : decoding_queues, cut.chunks())),
        ahead_(from != From::host && !cut.encodes() ? runs_ahead : taking_ahead) {}

  bool open(From from, const Devices::Behind& behind) {
    for (std::size_t i = 0; i < queue_count_; ++i) {
      queues_[i] = runtime_.devices.queue(device_, behind, gpu::Priority::first);
      if (!queues_[i]) return false;
    }
    if (from == From::rooms) return rooms_.add();
    return !cut_.encodes() || from == From::near || take_payloads();
  }

  int memory_device() const override { return rooms_.memory_device(); }

  bool reads_devices() const override { return true; }

  bool has_room() override {
    settle();
    return given_ < done_ + ahead_;
  }

  std::byte* place_of(std::uint64_t chunk, std::size_t) override { return rooms_.of(chunk); }
  void give_back(std::uint64_t chunks) override { rooms_.give_back(chunks); }

  void take(std::uint64_t chunk, const link::Arrived& arrived, bool is_encoded) override {
    if (is_encoded && arrived.device == device_) return join(chunk, arrived);
    launch();
    const std::size_t queue_number = given_ % queue_count_;
    const QueueLease& queue = queues_[queue_number];
    Piece& piece = begin_piece(chunk, arrived.chunks, queue_number, arrived.bytes);
    std::byte* const place = elements_ + cut_.offset(chunk);
    if (!is_encoded) {
      ahead_ = arrived.device == device_ ? runs_ahead : taking_ahead;
      piece.event = queue->copy(place, arrived.data, arrived.bytes, arrived.flag);
      return;
    }
    ahead_ = taking_ahead;
    std::byte* const payload = payload_memory(queue_number);
    if (!payload) return;
    queue->copy(payload, arrived.data, arrived.bytes);
    piece.is_encoded = true;
    piece.event = queue->codecs().decode(cut_.spec, cut_.type, payload, arrived.bytes, place,
                                         cut_.elements(chunk));
  }

  /// What join() has collected.
  void launch() override {
    if (joined_.empty()) return;
    const std::size_t queue_number = given_ % queue_count_;
    const QueueLease& queue = queues_[queue_number];
    std::size_t bytes = 0;
    for (const gpu::Incoming& one : joined_) bytes += one.bytes;
    Piece& piece = begin_piece(first_joined_, joined_.size(), queue_number, bytes);
    piece.is_encoded = true;
    // Copy engines are better at one, and kernels at many.
    if (copies_.size() == 1) {
      queue->copy(copies_[0].to, copies_[0].from, copies_[0].bytes);
    } else if (!copies_.empty()) {
      queue->copy_near(copies_);
    }
    piece.event = queue->codecs().decode(cut_.spec, cut_.type, joined_, gpu::Combine::replace);
    joined_.clear();
    copies_.clear();
    filled_ = 0;
  }

  void skip(std::uint64_t chunk) override {
    launch();
    begin_piece(chunk, 1, 0, 0);
  }

  std::uint64_t settled() override {
    settle();
    return settled_;
  }

  void drain() override {
    for (std::size_t i = 0; i < queue_count_; ++i) queues_[i]->drain();
  }

 private:
  /// Work of a queue: one chunk, or several that are copied or decoded at once.
  struct Piece {
    std::uint64_t first = 0;
    std::uint64_t chunks = 0;
    std::size_t queue = 0;
    gpu::Event event = 0;  ///< 0: nothing to be done; else the first, of chunks one each if encoded
    std::size_t bytes = 0;
    std::uint64_t given_ns = 0;
    bool is_encoded = false;
    std::uint64_t judged = 0;  ///< chunks
  };

  std::size_t room_of_run() const {
    const std::size_t room = aligned(cut_.room());
    return std::min<std::uint64_t>(cut_.chunks() * room, std::max(room, run_room));
  }

  static std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

  /// A payload that the device reaches is decoded with those that are there at the same time, in
  /// one launch. One that does not lie near is copied first, as decoders read it repeatedly.
  void join(std::uint64_t chunk, const link::Arrived& arrived) {
    ahead_ = runs_ahead;
    const std::size_t room = arrived.is_near ? 0 : aligned(arrived.bytes);
    if (filled_ + room > payload_room_ || copies_.size() == gpu::Queue::most_copies) launch();
    const std::byte* payload = arrived.data;
    if (!arrived.is_near) {
      std::byte* const memory = payload_memory(given_ % queue_count_);
      if (!memory) return skip(chunk);
      copies_.push_back({memory + filled_, arrived.data, arrived.bytes});
      payload = memory + filled_;
      filled_ += room;
    }
    if (joined_.empty()) first_joined_ = chunk;
    joined_.push_back(
        {payload, arrived.bytes, elements_ + cut_.offset(chunk), cut_.elements(chunk)});
    if (joined_.size() == gpu::CodecQueue::most_pieces) launch();
  }

  /// For the payloads of a queue's next piece of work: it works in order, so what lies there has
  /// been decoded by then. Null, and an error is noted: the device has none.
  std::byte* payload_memory(std::size_t queue) {
    memory::Buffer& memory = payloads_[queue];
    if (!memory) memory = runtime_.devices.take(device_, payload_room_);
    if (!memory && status_.is_ok()) status_ = short_of_memory(runtime_, device_);
    return memory.data();
  }

  /// Of all queues, once; false where the device has none.
  bool take_payloads() {
    for (std::size_t i = 0; i < queue_count_; ++i) {
      payloads_[i] = runtime_.devices.take(device_, payload_room_);
      if (!payloads_[i]) return false;
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

  void settle() {
    if (done_ == given_) return;
    for (; done_ < given_; ++done_) {
      Piece& piece = pieces_[done_ % pieces_.size()];
      if (piece.event != 0) {
        if (!is_over(piece)) return;
        note_piece(piece);
      }
      settled_ = piece.first + piece.chunks;
    }
    if (cut_.encodes()) decode_ns_ += trace::now_ns() - began_ns_;
  }

  bool is_over(Piece& piece) {
    const std::uint64_t events = piece.is_encoded ? piece.chunks : 1;
    for (; piece.judged < events; ++piece.judged) {
      gpu::Outcome outcome;
      const gpu::State state = queues_[piece.queue]->query(piece.event + piece.judged, &outcome);
      if (state == gpu::State::pending) return false;
      if (state == gpu::State::failed && status_.is_ok()) status_ = refused(runtime_, device_);
      if (state == gpu::State::done) judge(piece.first + piece.judged, outcome.status);
    }
    return true;
  }

  void note_piece(const Piece& piece) const {
    if (!trace::timeline.is_on()) return;
    for (std::uint64_t chunk = piece.first; chunk < piece.first + piece.chunks; ++chunk) {
      cut_.note(piece.is_encoded ? trace::Kind::decode : trace::Kind::copy_in, chunk,
                piece.given_ns,
                piece.is_encoded ? piece.bytes / piece.chunks : cut_.raw_bytes(chunk), device_);
    }
  }

  const int device_;
  std::byte* elements_;
  Rooms rooms_;
  const std::size_t payload_room_;  ///< of a queue
  const std::size_t queue_count_;
  std::size_t ahead_;  ///< pieces
  std::array<memory::Buffer, queues_from_host> payloads_;
  std::array<Piece, taking_ahead> pieces_;
  std::vector<gpu::Incoming> joined_;  ///< to be launched
  std::vector<gpu::Copy> copies_;      ///< before that
  std::uint64_t first_joined_ = 0;     ///< chunk
  std::size_t filled_ = 0;             ///< of the next queue's payload memory
  std::uint64_t given_ = 0;            ///< pieces
  std::uint64_t done_ = 0;             ///< pieces
  std::uint64_t settled_ = 0;          ///< chunks
  std::uint64_t began_ns_ = 0;         ///< when the queues got work after they had none
  std::array<QueueLease, queues_from_host> queues_;  ///< destroyed first: they use what is above
};

}  // namespace

std::unique_ptr<Decoder> device_decoder(Runtime& runtime, const Chunking& cut, int device,
                                        std::byte* elements, From from,
                                        const Devices::Behind& behind) {
  auto decoder = std::make_unique<DeviceDecoder>(runtime, cut, device, elements, from);
  if (!decoder->open(from, behind)) return nullptr;
  return decoder;
}

}  // namespace mpress::engine
