// The sending side of the peer link: chunks are encoded, or copied, into memory that the receiver's
// device reaches.

#include <algorithm>
#include <utility>
#include <vector>

#include "codec/codec.hpp"
#include "engine/chunk_events.hpp"
#include "engine/chunk_send.hpp"
#include "engine/job.hpp"
#include "engine/send_message.hpp"
#include "policy/chunks.hpp"

namespace mpress::engine {
namespace {

/// How many chunks a lane is given to encode beforehand: enough never to run dry, and few enough
/// that the first is seen as soon as it is ready.
constexpr std::uint64_t ahead = 3;

class PeerSend final : public ChunkSend {
 public:
  PeerSend() = default;
  ~PeerSend() override {
    if (shipment_.chunks > 0 && !is_sent_) give_up();
  }

  bool plan(Job& job, const Message& message, const Spec& spec, Elements& elements);
  trace::Way way() const override { return trace::Way::peer; }
  int send(Job& job, trace::Row& row) override;

 private:
  bool encodes() const { return header_.spec.codec != Codec::none; }
  std::size_t elements_in(std::uint64_t chunk) const {
    return header_.chunk_raw_bytes(chunk) / element_size(header_.type);
  }
  const std::byte* elements_of(std::uint64_t chunk) const {
    return elements_ + chunk * header_.chunk_bytes;
  }
  void start(std::uint64_t chunk);
  void start_encoding();
  void start_copying();
  bool finish(Job& job, std::uint64_t chunk);
  void give_up();

  struct Work {
    gpu::Ticket ticket = 0;
    std::uint64_t given_ns = 0;
  };

  const std::byte* elements_ = nullptr;
  memory::Buffer packed_;  ///< what they lie in, if it is mpress's
  link::PeerLink* link_ = nullptr;
  link::Shipment shipment_;  ///< without chunks: none is reserved
  bool is_sent_ = false;
  std::vector<Work> work_;
  std::uint64_t started_ = 0;     ///< chunks that the lane was given
  std::uint64_t run_begin_ = 0;   ///< of chunks that are not encoded: the first of the latest run
  std::uint64_t run_chunks_ = 1;  ///< how many the next one has
  std::uint64_t first_ns_ = 0;
  LaneUse lane_;  ///< destroyed first: what is under way uses the memory above
};

/// Large messages go in chunks, so that encoding, the copy between the GPUs and decoding overlap.
std::size_t chunk_bytes_of(const Job& job, const Elements& elements, bool encodes) {
  const std::size_t bytes = elements.count * element_size(elements.type);
  const std::size_t base = job.chunks.chunk_bytes();
  if (!job.chunks.cuts(bytes)) return (bytes + 7) / 8 * 8;
  return std::min(
      encodes ? policy::linked_chunk(bytes, base) : policy::linked_raw_chunk(bytes, base),
      wire::max_chunk_bytes);
}

bool PeerSend::plan(Job& job, const Message& message, const Spec& spec, Elements& elements) {
  const std::uint64_t begin = trace::now_ns();
  const bool encodes = spec.codec != Codec::none;
  const std::size_t chunk_bytes = chunk_bytes_of(job, elements, encodes);
  const std::size_t in_chunk = chunk_bytes / element_size(elements.type);
  const std::size_t room =
      std::max(chunk_bytes, encodes ? codec::max_payload_bytes(spec, elements.type, in_chunk) : 0);
  describe(job, message, spec, elements, chunk_bytes);
  link_ = &job.peer_link;
  if (!link_->reserve(peer_, elements.device, header_.chunks(), room, message_, shipment_) ||
      !resolve(job, elements)) {
    return false;
  }
  header_.peer_parcel = shipment_.first + 1;
  elements_ = static_cast<const std::byte*>(elements.data);
  work_.resize(header_.chunks());
  lane_ = job.devices.lane(elements.device);
  if (!lane_) return false;
  start(0);
  // What a device refuses is an error of the call while nothing is announced. Otherwise the header
  // travels, and the receiver makes ready, while the lane works.
  if (lane_->look(work_[0].ticket) == gpu::State::failed) return false;
  packed_ = std::move(elements.packed);
  first_ns_ = trace::now_ns() - begin;
  return true;
}

/// Sees to it that the lane has work while `chunk` is waited for.
void PeerSend::start(std::uint64_t chunk) {
  while (started_ < work_.size() && (encodes() ? started_ < chunk + ahead : run_begin_ <= chunk)) {
    if (encodes()) {
      start_encoding();
    } else {
      start_copying();
    }
  }
}

void PeerSend::start_encoding() {
  Work& work = work_[started_];
  work.given_ns = trace::timeline.now();
  work.ticket = lane_->encode(header_.spec, header_.type, elements_of(started_),
                              elements_in(started_), link_->place(shipment_, started_));
  ++started_;
}

/// A run of chunks that is twice as long as the one before: the receiver gets the first soon, and
/// the launches of all take little.
void PeerSend::start_copying() {
  run_begin_ = started_;
  const std::uint64_t end = std::min<std::uint64_t>(started_ + run_chunks_, work_.size());
  const std::uint64_t given = trace::timeline.now();
  std::size_t bytes = 0;
  for (std::uint64_t chunk = started_; chunk < end; ++chunk)
    bytes += header_.chunk_raw_bytes(chunk);
  const gpu::Ticket ticket =
      lane_->copy_near(link_->place(shipment_, started_), elements_of(started_), bytes);
  for (; started_ < end; ++started_) {
    work_[started_].ticket = ticket;
    work_[started_].given_ns = given;
  }
  run_chunks_ *= 2;
}

/// Waits until a chunk is where the receiver finds it. False where the device refuses.
bool PeerSend::finish(Job& job, std::uint64_t chunk) {
  const Work& work = work_[chunk];
  gpu::Outcome outcome;
  if (job.devices.wait(job, *lane_, work.ticket, &outcome) != MPI_SUCCESS) return false;
  const std::size_t raw_bytes = header_.chunk_raw_bytes(chunk);
  std::size_t bytes = raw_bytes;
  if (encodes() && outcome.bytes < raw_bytes) {
    bytes = outcome.bytes;
  } else if (encodes()) {
    const gpu::Ticket copied =
        lane_->copy_near(link_->place(shipment_, chunk), elements_of(chunk), raw_bytes);
    if (job.devices.wait(job, *lane_, copied) != MPI_SUCCESS) return false;
  }
  note_chunk(encodes() ? trace::Kind::encode : trace::Kind::copy_out, header_, peer_, chunk,
             work.given_ns, bytes, lane_->device());
  link_->send(shipment_, chunk, bytes);
  sent_bytes_ += bytes;
  return true;
}

int PeerSend::send(Job& job, trace::Row& row) {
  const std::uint64_t begin = trace::now_ns();
  is_sent_ = true;
  for (std::uint64_t chunk = 0; chunk < work_.size(); ++chunk) {
    start(chunk);
    if (!finish(job, chunk)) {
      lane_->drain();  // then others may have the memory
      link_->fail(shipment_);
      return job.device_code;
    }
  }
  count(job, row, first_ns_ + (trace::now_ns() - begin));
  return MPI_SUCCESS;
}

/// Nobody will hear of the shipment.
void PeerSend::give_up() {
  if (lane_) lane_->drain();
  link_->fail(shipment_);
  link_->cancel(message_);
}

}  // namespace

std::unique_ptr<ChunkSend> plan_peer_chunks(Job& job, const Message& message, const Spec& spec,
                                            Elements& elements) {
  auto chunks = std::make_unique<PeerSend>();
  if (!chunks->plan(job, message, spec, elements)) return nullptr;
  return chunks;
}

}  // namespace mpress::engine
