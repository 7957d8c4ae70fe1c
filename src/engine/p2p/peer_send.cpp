// The sending side of the peer link: chunks are encoded, or copied, into memory that the receiver's
// device reaches.

#include <algorithm>
#include <utility>
#include <vector>

#include "codec/codec.hpp"
#include "engine/backoff.hpp"
#include "engine/job.hpp"
#include "engine/p2p/chunk_events.hpp"
#include "engine/p2p/chunk_send.hpp"
#include "engine/p2p/send_message.hpp"
#include "policy/chunks.hpp"
#include "trace/message.hpp"

namespace mpress::engine {
namespace {

/// How long an offer stands while its sender waits for nothing else: about what the message takes
/// on its way, or, where its receiver waits for its turn, what a few do.
constexpr std::uint64_t offer_ns(std::size_t bytes, bool is_seen) {
  return 10000 + bytes / (is_seen ? 80 : 400);
}

class PeerSend final : public ChunkSend {
 public:
  PeerSend() = default;
  ~PeerSend() override {
    if (shipment_.chunks > 0 && !is_announced_) give_up();
  }

  bool plan(Job& job, const Message& message, const Spec& spec, Elements& elements,
            bool buffer_stays);
  trace::Way way() const override {
    return shipment_.memory || is_offered_ ? trace::Way::peer : trace::Way::chunks;
  }
  int send(Job& job, trace::Row& row) override;
  bool is_offered() const override { return is_offered_; }
  bool advance(Job& job, trace::Row& row, bool waits_for_more) override;

 private:
  bool encodes() const { return header_.spec.codec != Codec::none; }
  std::size_t elements_in(std::uint64_t chunk) const {
    return header_.chunk_raw_bytes(chunk) / element_size(header_.type);
  }
  const std::byte* elements_of(std::uint64_t chunk) const {
    return elements_ + chunk * header_.chunk_bytes;
  }
  bool open_queue(Job& job);
  bool open_source(Job& job);
  bool is_answered(Job& job, bool waits_for_more);
  bool send_chunks(Job& job);
  void start(std::uint64_t chunk);
  void start_encoding();
  void start_copying();
  bool finish(Job& job, std::uint64_t chunk);
  void give_up();

  struct Work {
    gpu::Event event = 0;
    std::uint64_t given_ns = 0;
  };

  Spec spec_;  ///< what encodes; the header's is resolved
  const std::byte* elements_ = nullptr;
  memory::Buffer packed_;  ///< what they lie in, if it is mpress's
  link::PeerLink* link_ = nullptr;
  link::Shipment shipment_;  ///< without chunks: none is reserved
  int device_ = gpu::host;
  bool is_announced_ = false;
  bool is_offered_ = false;
  bool is_over_ = false;
  std::uint64_t offer_began_ns_ = 0;  ///< 0: nobody has waited yet
  std::uint64_t looks_ = 0;           ///< at what the receiver does
  std::vector<Work> work_;
  std::uint64_t started_ = 0;     ///< chunks that the queue was given
  std::uint64_t run_begin_ = 0;   ///< of chunks that are not encoded: the first of the latest run
  std::uint64_t run_chunks_ = 1;  ///< how many the next one has
  std::uint64_t first_ns_ = 0;
  std::unique_ptr<ChunkSource> source_;  ///< of chunks that go by MPI
  Chunk first_;                          ///< of those
  QueueLease queue_;  ///< destroyed first: what is under way uses the memory above
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

/// May a message for which the link has no memory end as chunks by MPI? Those take the host's; one
/// that is longer than the limit may, but not when others hold so much already: a sender is not to
/// run ahead of its receiver without end.
bool may_go_by_mpi(const Job& job) {
  return job.chunks.is_open() && job.chunks.outbox.has_room(0, job.config.pool_limit);
}

bool PeerSend::plan(Job& job, const Message& message, const Spec& spec, Elements& elements,
                    bool buffer_stays) {
  const std::uint64_t begin = trace::now_ns();
  const bool encodes = spec.codec != Codec::none;
  const std::size_t chunk_bytes = chunk_bytes_of(job, elements, encodes);
  const std::size_t in_chunk = chunk_bytes / element_size(elements.type);
  const std::size_t room =
      std::max(chunk_bytes, encodes ? codec::max_payload_bytes(spec, elements.type, in_chunk) : 0);
  describe(job, message, spec, elements, chunk_bytes);
  link_ = &job.peer_link;
  const std::size_t chunks = header_.chunks();
  if (encodes && chunks > gpu::Queue::most_pieces) return false;
  const bool may_be_offered = !encodes && !elements.packed && buffer_stays;
  const bool lands =
      encodes && link_->reserve_landing(peer_, elements.device, chunks, room, message_, shipment_);
  if (!lands && !link_->reserve(peer_, elements.device, chunks, room, message_, shipment_) &&
      !(may_be_offered && may_go_by_mpi(job) &&
        link_->reserve_offer(peer_, chunks, message_, shipment_))) {
    return false;
  }
  spec_ = spec;
  if (spec.bound == Bound::rel) {
    // The device finds the range, and the header does not wait for it: payloads tell the bound.
    header_.spec.bound = Bound::abs;
    header_.spec.value = 0;
  }
  header_.peer_parcel = shipment_.first + 1;
  elements_ = static_cast<const std::byte*>(elements.data);
  device_ = elements.device;
  work_.resize(chunks);
  is_offered_ = may_be_offered && link_->offer(shipment_, peer_, device_, elements_, message.bytes);
  if (!is_offered_ && !shipment_.memory) {
    if (!link_->introduce(shipment_) || !open_source(job)) return false;
  } else if (!is_offered_) {
    link_->lay_out(shipment_);
    if (!open_queue(job)) return false;
  }
  packed_ = std::move(elements.packed);
  first_ns_ = trace::now_ns() - begin;
  return true;
}

/// False where the device refuses: an error of the call while nothing is announced. Otherwise the
/// header travels, and the receiver makes ready, while the queue works.
bool PeerSend::open_queue(Job& job) {
  queue_ = job.devices.queue(device_);
  if (!queue_) return false;
  start(0);
  return queue_->look(work_[0].event) != gpu::State::failed;
}

/// The same for chunks that go by MPI: once they are announced, what fails ends the job.
bool PeerSend::open_source(Job& job) {
  if (!source_) {
    source_ = device_chunks(job, header_, peer_,
                            {header_.type, elements_, header_.count, device_, memory::Buffer{}});
  }
  if (source_ && !first_.data) first_ = source_->take(job, 0);
  return static_cast<bool>(first_.data);
}

/// Sees to it that the queue has work while `chunk` is waited for.
void PeerSend::start(std::uint64_t chunk) {
  if (encodes()) {
    if (started_ == 0) start_encoding();
    return;
  }
  while (started_ < work_.size() && run_begin_ <= chunk) start_copying();
}

/// All chunks in one go: launches take longer than short ones do. The first is ready when its share
/// of the time has passed.
void PeerSend::start_encoding() {
  std::vector<gpu::Piece> pieces;
  pieces.reserve(work_.size());
  for (std::uint64_t chunk = 0; chunk < work_.size(); ++chunk) {
    pieces.push_back({elements_of(chunk), elements_in(chunk), shipment_.place(chunk)});
  }
  const std::uint64_t given = trace::timeline.now();
  const gpu::Event first = queue_->encode(spec_, header_.type, pieces);
  for (; started_ < work_.size(); ++started_) work_[started_] = {first + started_, given};
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
  const gpu::Event event =
      queue_->copy_near(shipment_.place(started_), elements_of(started_), bytes);
  for (; started_ < end; ++started_) work_[started_] = {event, given};
  run_chunks_ *= 2;
}

/// Waits until a chunk is where the receiver finds it. False where the device refuses.
bool PeerSend::finish(Job& job, std::uint64_t chunk) {
  const Work& work = work_[chunk];
  gpu::Outcome outcome;
  if (job.devices.wait(job, *queue_, work.event, &outcome) != MPI_SUCCESS) return false;
  const std::size_t raw_bytes = header_.chunk_raw_bytes(chunk);
  std::size_t bytes = raw_bytes;
  if (encodes() && outcome.bytes < raw_bytes) {
    bytes = outcome.bytes;
  } else if (encodes()) {
    const gpu::Event copied =
        queue_->copy_near(shipment_.place(chunk), elements_of(chunk), raw_bytes);
    if (job.devices.wait(job, *queue_, copied) != MPI_SUCCESS) return false;
  }
  note_chunk(encodes() ? trace::Kind::encode : trace::Kind::copy_out, header_, peer_, chunk,
             work.given_ns, bytes, device_);
  link_->send(shipment_, chunk, bytes);
  sent_bytes_ += bytes;
  return true;
}

int PeerSend::send(Job& job, trace::Row& row) {
  for (Backoff backoff; !advance(job, row, false);) backoff.pause();
  return code_;
}

bool PeerSend::advance(Job& job, trace::Row& row, bool waits_for_more) {
  is_announced_ = true;
  if (is_over_) return true;
  if (is_offered_) {
    if (!is_answered(job, waits_for_more)) return false;
    is_over_ = is_offered_;
  }
  const std::uint64_t begin = trace::now_ns();
  if (!is_over_ && !send_chunks(job)) code_ = job.device_code;
  is_over_ = true;
  if (code_ == MPI_SUCCESS) count(job, row, first_ns_ + (trace::now_ns() - begin));
  return true;
}

/// Has the offered data been taken, or is it not offered any more?
bool PeerSend::is_answered(Job& job, bool waits_for_more) {
  constexpr std::uint64_t looks_a_question = 1 << 16;
  switch (link_->look_at_offer(shipment_, peer_)) {
    case link::PeerLink::Offer::open:
      if (waits_for_more) return false;
      if (offer_began_ns_ == 0) offer_began_ns_ = trace::now_ns();
      if (trace::now_ns() - offer_began_ns_ <
          offer_ns(header_.raw_bytes(), link_->is_seen(shipment_))) {
        return false;
      }
      if (!shipment_.memory && !open_source(job)) {
        if (!link_->fail(shipment_)) return false;
        code_ = refused(job, device_);
        return true;
      }
      if (!link_->withdraw(shipment_, peer_)) return false;
      is_offered_ = false;
      return true;
    case link::PeerLink::Offer::borrowed:
      if (++looks_ % looks_a_question != 0 || link_->lives(peer_)) return false;
      trace::say("rank " + std::to_string(job.rank) + ": rank " + std::to_string(peer_) +
                 " ended while it took a message");
      code_ = job.device_code;
      return true;
    case link::PeerLink::Offer::returned: sent_bytes_ = header_.raw_bytes(); return true;
  }
  return true;
}

bool PeerSend::send_chunks(Job& job) {
  if (!shipment_.memory) {
    send_by_mpi(job, *source_, std::move(first_));
    source_.reset();
    return true;
  }
  if (!queue_ && !open_queue(job)) {
    refused(job, device_);
    if (queue_) queue_->drain();
    link_->fail(shipment_);
    return false;
  }
  for (std::uint64_t chunk = 0; chunk < work_.size(); ++chunk) {
    start(chunk);
    if (finish(job, chunk)) continue;
    queue_->drain();  // then others may have the memory
    link_->fail(shipment_);
    return false;
  }
  return true;
}

/// Nobody will hear of the shipment.
void PeerSend::give_up() {
  if (queue_) queue_->drain();
  link_->fail(shipment_);
  link_->cancel(message_);
}

}  // namespace

std::unique_ptr<ChunkSend> plan_peer_chunks(Job& job, const Message& message, const Spec& spec,
                                            Elements& elements, bool buffer_stays) {
  auto chunks = std::make_unique<PeerSend>();
  if (!chunks->plan(job, message, spec, elements, buffer_stays)) return nullptr;
  return chunks;
}

}  // namespace mpress::engine
