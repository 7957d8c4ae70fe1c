// Chunks for a region on a device: copies to it and decoding overlap, each at another chunk.

#include <array>
#include <utility>
#include <vector>

#include "engine/job.hpp"
#include "engine/pipeline/decoder.hpp"

namespace mpress::engine {
namespace {

constexpr std::size_t receiving_ahead = 8;  ///< from a link, in pinned memory or the device's
constexpr std::size_t taking_ahead = 16;    ///< pieces of work
/// Runs that a device copies from another: two at once, so that one moves data while another begins
/// or ends. What comes meanwhile makes the next one longer, and long copies use a link better.
constexpr std::size_t runs_ahead = 3;
constexpr std::size_t decoding_queues = 2;  ///< one copies while the other decodes
/// From memory of the host, where a copy takes longer than decoding and each begins late.
constexpr std::size_t queues_from_host = 4;

class DeviceDecoder final : public Decoder {
 public:
  DeviceDecoder(Job& job, const Chunking& cut, int device, std::byte* elements, From from)
      : Decoder(job, cut),
        device_(device),
        elements_(elements),
        home_(from == From::rooms ? device : gpu::host),
        queue_count_(std::min<std::uint64_t>(
            from == From::host ? queues_from_host : decoding_queues, cut.chunks())),
        ahead_(from != From::host && !cut.encodes() ? runs_ahead : taking_ahead) {}

  bool open(From from) {
    for (std::size_t i = 0; i < queue_count_; ++i) {
      queues_[i] = job_.devices.queue(device_, gpu::Priority::first);
      if (!queues_[i]) return false;
    }
    if (from == From::rooms) return add_room();
    return !cut_.encodes() || from == From::near || take_payloads();
  }

  int home() const override { return home_; }

  bool reads_devices() const override { return true; }

  bool has_room() override {
    settle();
    return given_ < done_ + ahead_;
  }

  std::byte* place_of(std::uint64_t chunk, std::size_t) override {
    while (given_back_ < settled()) free_rooms_.push_back(room_of(given_back_++));
    if (chunk < placed_) return rooms_[room_of(chunk)].data();
    if (placed_ == given_back_ + receiving_ahead) return nullptr;
    // Without one more, those that there are serve, or there will be one.
    if (free_rooms_.empty() && !add_room()) return nullptr;
    room_of(placed_++) = free_rooms_.back();
    free_rooms_.pop_back();
    return rooms_[room_of(chunk)].data();
  }

  void take(std::uint64_t chunk, const link::Arrived& arrived, bool is_encoded) override {
    const std::size_t queue_number = given_ % queue_count_;
    const QueueLease& queue = queues_[queue_number];
    std::byte* const place = elements_ + cut_.offset(chunk);
    const std::byte* data = arrived.data;
    Piece& piece = begin_piece(chunk, arrived.chunks, queue_number, arrived.bytes);
    if (!is_encoded) {
      ahead_ = arrived.device == device_ ? runs_ahead : taking_ahead;
      piece.event = queue->copy(place, data, arrived.bytes, arrived.flag);
      return;
    }
    piece.is_encoded = true;
    if (!arrived.is_near || arrived.device != device_) {
      if (!take_payloads()) {
        if (code_ == MPI_SUCCESS) code_ = MPI_ERR_NO_MEM;
        return;
      }
      // What lies there has been decoded by then: the queue works in order.
      std::byte* const payload = payloads_[queue_number].data();
      queue->copy(payload, data, arrived.bytes);
      data = payload;
    }
    piece.event =
        queue->decode(cut_.spec, cut_.type, data, arrived.bytes, place, cut_.elements(chunk));
  }

  void skip(std::uint64_t chunk) override { begin_piece(chunk, 1, 0, 0); }

  std::uint64_t settled() override {
    settle();
    return settled_;
  }

  void drain() override {
    for (std::size_t i = 0; i < queue_count_; ++i) queues_[i]->drain();
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

  /// Room for one more chunk from a link.
  bool add_room() {
    const std::size_t bytes = cut_.raw_bytes(0);
    memory::Buffer room = home_ == gpu::host ? job_.devices.take_pinned(device_, bytes)
                                             : job_.devices.take(device_, bytes);
    if (!room) return false;
    free_rooms_.push_back(rooms_.size());
    rooms_.push_back(std::move(room));
    return true;
  }

  /// Memory of the device for payloads, once; false where it has none.
  bool take_payloads() {
    for (std::size_t i = 0; i < queue_count_; ++i) {
      if (!payloads_[i]) payloads_[i] = job_.devices.take(device_, cut_.room());
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
      const Piece& piece = pieces_[done_ % pieces_.size()];
      if (piece.event != 0) {
        gpu::Outcome outcome;
        const gpu::State state = queues_[piece.queue]->query(piece.event, &outcome);
        if (state == gpu::State::pending) return;
        if (state == gpu::State::failed && code_ == MPI_SUCCESS) code_ = refused(job_, device_);
        if (state == gpu::State::done) judge(piece.first, outcome.status);
        note_piece(piece);
      }
      settled_ = piece.first + piece.chunks;
    }
    if (cut_.encodes()) decode_ns_ += trace::now_ns() - began_ns_;
  }

  void note_piece(const Piece& piece) const {
    if (!trace::timeline.is_on()) return;
    for (std::uint64_t chunk = piece.first; chunk < piece.first + piece.chunks; ++chunk) {
      cut_.note(piece.is_encoded ? trace::Kind::decode : trace::Kind::copy_in, chunk,
                piece.given_ns, piece.chunks > 1 ? cut_.raw_bytes(chunk) : piece.bytes, device_);
    }
  }

  const int device_;
  std::byte* elements_;
  const int home_;  ///< whose memory chunks from a link come to: the device's, or the host's
  const std::size_t queue_count_;
  std::size_t ahead_;  ///< pieces
  std::array<memory::Buffer, queues_from_host> payloads_;
  std::vector<memory::Buffer> rooms_;
  std::vector<std::size_t> free_rooms_;
  std::array<std::size_t, receiving_ahead> room_numbers_{};  ///< by chunk
  std::uint64_t placed_ = 0;                                 ///< chunks that got a room
  std::uint64_t given_back_ = 0;                             ///< chunks whose room is free again
  std::array<Piece, taking_ahead> pieces_;
  std::uint64_t given_ = 0;     ///< pieces
  std::uint64_t done_ = 0;      ///< pieces
  std::uint64_t settled_ = 0;   ///< chunks
  std::uint64_t began_ns_ = 0;  ///< when the queues got work after they had none
  std::array<QueueLease, queues_from_host> queues_;  ///< destroyed first: they use what is above
};

}  // namespace

std::unique_ptr<Decoder> device_decoder(Job& job, const Chunking& cut, int device,
                                        std::byte* elements, From from) {
  auto decoder = std::make_unique<DeviceDecoder>(job, cut, device, elements, from);
  if (!decoder->open(from)) return nullptr;
  return decoder;
}

}  // namespace mpress::engine
