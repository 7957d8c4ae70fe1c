// The sending side of the peer link: chunks are encoded, or copied, into memory that the receiver's
// device reaches.

#include <algorithm>
#include <utility>
#include <vector>

#include "codec/codec.hpp"
#include "engine/job.hpp"
#include "engine/p2p/chunk_events.hpp"
#include "engine/p2p/chunk_send.hpp"
#include "engine/p2p/send_message.hpp"
#include "link/route.hpp"
#include "policy/chunks.hpp"
#include "trace/message.hpp"

namespace mpress::engine {
namespace {

class PeerSend final : public ChunkSend {
 public:
  PeerSend() = default;
  ~PeerSend() override {
    if (transfer_.chunks > 0 && !is_released_) give_up();
  }

  bool plan(Job& job, const Message& message, const Spec& spec, Elements& elements,
            bool buffer_stays);
  trace::Way way() const override {
    return transfer_.memory || is_offered_ ? trace::Way::peer : trace::Way::chunks;
  }
  bool advance(Job& job, trace::Row& row, bool waits_for_more) override;
  bool needs_host() const override {
    return !is_over_ && !is_offered_ && (source_ || !is_published_by_device_);
  }
  bool is_offered() const override { return is_offered_; }

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
  bool advance_offer(Job& job, bool waits_for_more);
  bool advance_chunks(Job& job);
  void start_encoding();
  void start_copying();
  void end(const gpu::Outcome& outcome);
  void fail(Job& job);
  void give_up();

  /// A piece of work of the queue: a chunk that is encoded, or a run of those that are copied.
  struct Work {
    std::uint64_t first;
    std::uint64_t chunks;
    gpu::Event event;
  };

  Spec spec_;  ///< what encodes; the header's is resolved
  const std::byte* elements_ = nullptr;
  memory::Buffer packed_;  ///< what they lie in, if it is mpress's
  link::PeerLink* link_ = nullptr;
  link::Transfer transfer_;  ///< without chunks: none is reserved
  int device_ = gpu::host;
  bool is_offered_ = false;
  bool is_released_ = false;  ///< the link has the transfer back
  bool is_over_ = false;
  bool is_published_by_device_ = false;
  std::uint64_t offer_began_ns_ = 0;  ///< 0: nobody has waited yet
  std::uint64_t looks_ = 0;           ///< at what the receiver does
  std::vector<Work> work_;
  std::size_t ended_ = 0;                ///< pieces of work
  std::uint64_t given_ns_ = 0;           ///< when the queue got it all
  std::unique_ptr<ChunkSource> source_;  ///< of chunks that go by MPI
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
  const link::Reservation wanted{{&peer_, 1}, elements.device, chunks, room, message_};
  if (!(encodes && link_->reserve_at_reader(wanted, transfer_)) &&
      !link_->reserve(wanted, transfer_) &&
      !(may_be_offered && may_go_by_mpi(job) &&
        link_->reserve_bare(peer_, chunks, message_, transfer_))) {
    return false;
  }
  spec_ = spec;
  if (spec.bound == Bound::rel) {
    // The device finds the range, and the header does not wait for it: payloads tell the bound.
    header_.spec.bound = Bound::abs;
    header_.spec.value = 0;
  }
  header_.route =
      link::Route(link::Route(header_.route).number, link::Kind::peer, transfer_.first).word();
  elements_ = static_cast<const std::byte*>(elements.data);
  device_ = elements.device;
  if (!encodes) transfer_.raw_bytes = header_.raw_bytes();
  is_published_by_device_ = link_->devices_publish();
  is_offered_ =
      may_be_offered && link_->expose(transfer_, peer_, device_, elements_, message.bytes);
  if (!is_offered_ && !transfer_.memory) {
    if (!link_->introduce(transfer_) || !open_source(job)) return false;
  } else if (!is_offered_) {
    link_->lay_out(transfer_);
    if (!open_queue(job)) return false;
  }
  packed_ = std::move(elements.packed);
  took_ns_ = trace::now_ns() - begin;
  return true;
}

/// Gives a queue all of the work. False where the device refuses: an error of the call while
/// nothing is announced. Otherwise the header travels, and the receiver makes ready, while the
/// queue works.
bool PeerSend::open_queue(Job& job) {
  queue_ = job.devices.queue(device_);
  if (!queue_) return false;
  given_ns_ = trace::now_ns();
  if (encodes()) {
    start_encoding();
  } else {
    start_copying();
  }
  return queue_->query(work_[0].event) != gpu::State::failed;
}

/// The same for chunks that go by MPI.
bool PeerSend::open_source(Job& job) {
  source_ = device_chunks(job, header_, peer_,
                          {header_.type, elements_, header_.count, device_, memory::Buffer{}});
  return source_ != nullptr;
}

/// All chunks in one go: launches take longer than short ones do. The first is ready when its share
/// of the time has passed. A payload that is larger than its elements stays as it is, since the
/// device that publishes it asks nobody.
void PeerSend::start_encoding() {
  const std::uint64_t chunks = header_.chunks();
  std::vector<gpu::Piece> pieces;
  pieces.reserve(chunks);
  for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
    pieces.push_back({elements_of(chunk), elements_in(chunk), transfer_.place(chunk),
                      is_published_by_device_ ? link_->report(transfer_, chunk) : nullptr});
  }
  const gpu::Event first = queue_->encode(spec_, header_.type, pieces);
  for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) work_.push_back({chunk, 1, first + chunk});
}

void PeerSend::start_copying() {
  const std::uint32_t chunks = transfer_.chunks;
  for (std::uint32_t run = 0, end = 0; run < chunks; run = end) {
    end = std::min(link::Transfer::run_behind(run), chunks);
    const std::size_t begin_byte = std::size_t{run} * header_.chunk_bytes;
    const std::size_t end_byte =
        std::min<std::size_t>(std::size_t{end} * header_.chunk_bytes, header_.raw_bytes());
    gpu::Event event =
        queue_->copy_near(transfer_.place(run), elements_of(run), end_byte - begin_byte);
    if (is_published_by_device_) {
      event = queue_->write(&link_->report(transfer_, run)->sequence, 1);
    }
    work_.push_back({run, end - run, event});
  }
}

bool PeerSend::advance(Job& job, trace::Row& row, bool waits_for_more) {
  if (is_over_) return true;
  if (is_offered_ && !advance_offer(job, waits_for_more)) return false;
  if (!is_over_ && !advance_chunks(job)) return false;
  is_over_ = true;
  if (code_ == MPI_SUCCESS) count(job, row);
  return true;
}

/// True once the offered data has been taken, or is not offered any more.
bool PeerSend::advance_offer(Job& job, bool waits_for_more) {
  constexpr std::uint64_t looks_a_question = 1 << 16;
  switch (link_->look_at_offer(transfer_, peer_)) {
    case link::PeerLink::Offer::open:
      if (waits_for_more) return false;
      if (offer_began_ns_ == 0) offer_began_ns_ = trace::now_ns();
      if (trace::now_ns() - offer_began_ns_ <
          link_->parameters().offer_ns(header_.raw_bytes(), link_->is_seen(transfer_))) {
        return false;
      }
      if (!transfer_.memory && !source_ && !open_source(job)) {
        if (!link_->fail(transfer_)) return false;
        is_released_ = is_over_ = true;
        code_ = refused(job, device_);
        return true;
      }
      if (!link_->withdraw(transfer_, peer_)) return false;
      is_offered_ = false;
      if (transfer_.memory && !open_queue(job)) fail(job);
      return true;
    case link::PeerLink::Offer::getting:
      if (++looks_ % looks_a_question != 0 || link_->lives(peer_)) return false;
      trace::say("rank " + std::to_string(job.rank) + ": rank " + std::to_string(peer_) +
                 " ended while it took a message");
      code_ = job.device_code;
      break;
    case link::PeerLink::Offer::returned: sent_bytes_ = header_.raw_bytes(); break;
  }
  is_released_ = is_over_ = true;
  return true;
}

/// True once all chunks are published, or will not come.
bool PeerSend::advance_chunks(Job& job) {
  if (source_) {
    if (!send_by_mpi(job, *source_)) return false;
    source_.reset();
  }
  for (; ended_ < work_.size(); ++ended_) {
    gpu::Outcome outcome;
    const gpu::State state = queue_->query(work_[ended_].event, &outcome);
    if (state == gpu::State::pending) return false;
    if (state == gpu::State::failed) {
      fail(job);
      return true;
    }
    end(outcome);
  }
  if (queue_) took_ns_ += trace::now_ns() - given_ns_;
  link_->release(transfer_);
  is_released_ = true;
  return true;
}

/// A piece of work is done.
void PeerSend::end(const gpu::Outcome& outcome) {
  const Work& work = work_[ended_];
  for (std::uint64_t chunk = work.first; chunk < work.first + work.chunks; ++chunk) {
    const std::size_t bytes = encodes() ? outcome.bytes : header_.chunk_raw_bytes(chunk);
    if (!is_published_by_device_) link_->publish(transfer_, chunk, bytes);
    note_chunk(encodes() ? trace::Kind::encode : trace::Kind::copy_out, header_, peer_, chunk,
               given_ns_, bytes, device_);
    sent_bytes_ += bytes;
  }
}

/// The device refuses. What is under way ends first, as others may have the memory then.
void PeerSend::fail(Job& job) {
  code_ = refused(job, device_);
  if (queue_) queue_->drain();
  link_->fail(transfer_);
  is_released_ = is_over_ = true;
}

/// Nobody will hear of the transfer, or nobody looks at this send any more.
void PeerSend::give_up() {
  if (queue_) queue_->drain();
  link_->fail(transfer_);
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
