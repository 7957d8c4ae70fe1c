// The receiving side of the peer link: the sink takes chunks from where the sender's device has
// them.

#include <array>
#include <string>
#include <utility>

#include "engine/job.hpp"
#include "engine/p2p/chunk_events.hpp"
#include "engine/p2p/chunk_receive.hpp"
#include "link/route.hpp"
#include "trace/message.hpp"

namespace mpress::engine {
namespace {

class PeerReceive final : public ChunkReceive {
 public:
  PeerReceive(const wire::Header& header, int source, int device, std::unique_ptr<ChunkSink> sink)
      : ChunkReceive(header, source, std::move(sink)),
        device_(sink_->reads_devices() ? device : gpu::host),
        began_ns_(trace::timeline.now()) {}

  trace::Way way() const override {
    if (by_mpi_) return by_mpi_->way();
    return exposed_.data ? trace::Way::direct : trace::Way::peer;
  }

  int code() const override { return by_mpi_ ? by_mpi_->code() : ChunkReceive::code(); }
  std::size_t wire_bytes() const override {
    return by_mpi_ ? by_mpi_->wire_bytes() : ChunkReceive::wire_bytes();
  }
  std::uint64_t decode_ns() const override {
    return by_mpi_ ? by_mpi_->decode_ns() : ChunkReceive::decode_ns();
  }

  bool advance(Job& job) override {
    if (by_mpi_) return advance_by_mpi(job);
    while (taken_ < chunks_ && !is_broken() && take_next(job)) {
    }
    if (by_mpi_) return advance_by_mpi(job);
    const std::uint64_t settled = sink_->settled(job);
    const bool is_over = settled == (is_broken() ? taken_ : chunks_);
    if (exposed_.data) {
      if (is_over) acknowledge_once(job);
      return is_over;
    }
    if (is_over) job.peer_link.open_block(source_, std::exchange(block_, 0), device_);
    const std::uint64_t free = is_over ? chunks_ : settled;
    for (; freed_ < free; ++freed_) job.peer_link.acknowledge(source_, slot_of(freed_));
    return is_over;
  }

 private:
  bool encodes() const { return header_.spec.codec != Codec::none; }
  bool is_broken() const { return code_ != MPI_SUCCESS; }
  std::uint64_t slot_of(std::uint64_t chunk) const {
    return link::Route(header_.route).slot + chunk;
  }

  /// Hands the next chunk to the sink. False where it is not there yet, or the sink has no room.
  bool take_next(Job& job) {
    if (exposed_.data) return take_exposed(job);
    const bool reads_devices = device_ != gpu::host;
    if (reads_devices && !sink_->has_room(job)) return false;
    const auto arrival = job.peer_link.look(source_, slot_of(taken_), device_);
    if (arrival.state == link::Slot::planned) {
      if (is_lost(job)) give_up(job);
      return false;
    }
    if (arrival.state == link::Slot::offered && taken_ == 0) return get(job);
    if (taken_ == 0) block_ = arrival.block;
    if (arrival.state == link::Slot::by_mpi && taken_ == 0) {
      job.peer_link.acknowledge(source_, slot_of(0));
      by_mpi_ = receive_chunks(job, header_, source_, std::move(sink_));
      return false;
    }
    if (arrival.state != link::Slot::there || !is_sound(arrival)) {
      give_up(job);
      return false;
    }
    const std::byte* data = arrival.data;
    if (!reads_devices) {
      data = copied_to_host(job, arrival);
      if (!data) return false;
    }
    looks_ = 0;
    if (reads_devices && arrival.device == device_ && !encodes()) return take_run(job, arrival);
    note_arrival(arrival.bytes);
    const bool is_near = arrival.is_near && arrival.device == device_;
    sink_->take(job, taken_++, {data, arrival.bytes, encodes(), is_near});
    return true;
  }

  /// Payloads are as long as they came out, and may be longer than their elements.
  bool is_sound(const link::PeerLink::Arrival& arrival) const {
    return encodes() ? arrival.bytes > 0 && arrival.bytes <= room_for_chunk(header_)
                     : arrival.bytes == header_.chunk_raw_bytes(taken_);
  }

  bool advance_by_mpi(Job& job) {
    if (!by_mpi_->advance(job)) return false;
    job.peer_link.open_block(source_, std::exchange(block_, 0), device_);
    return true;
  }

  /// Takes a message that is offered where the sender's program has it. False where it is not any
  /// more. The sender waits then, so the device tells by itself when it has read all, where it can:
  /// nothing that the program does next holds this up.
  bool get(Job& job) {
    const std::uint64_t first = slot_of(0);
    const std::uint64_t now_ns = trace::now_ns();
    if (found_ns_ == 0) found_ns_ = now_ns;
    if (!job.peer_link.is_turn(source_, first, header_.raw_bytes(), found_ns_, now_ns)) {
      return false;
    }
    exposed_ = job.peer_link.get(source_, first, device_, header_.raw_bytes());
    if (exposed_.state == link::Slot::failed) {
      job.peer_link.acknowledge(source_, first);  // which the sender looks at alone
      freed_ = chunks_;
      give_up(job);
    }
    if (!exposed_.data) return false;
    if (exposed_.device == device_) {
      std::uint32_t* const flag =
          is_awaited_ ? nullptr : job.peer_link.acknowledge_flag(source_, first, device_);
      tells_ = flag != nullptr;
      note_arrival(header_.raw_bytes());
      taken_ = chunks_;
      sink_->take_raw(job, 0, chunks_, exposed_.data, header_.raw_bytes(), flag);
    }
    return true;
  }

  /// Once. A device that was to tell and fails may have told, or not.
  void acknowledge_once(Job& job) {
    const bool tells = std::exchange(tells_, false);
    if (std::exchange(is_returned_, true) || (tells && sink_->code() == MPI_SUCCESS)) return;
    if (sink_->code() != MPI_SUCCESS) sink_->drain();
    if (tells) {
      job.peer_link.acknowledge_once(source_, slot_of(0), exposed_.serial);
    } else {
      job.peer_link.acknowledge(source_, slot_of(0));
    }
  }

  /// The next chunk of such a message, where the sink does not take it from there.
  bool take_exposed(Job& job) {
    const std::size_t bytes = header_.chunk_raw_bytes(taken_);
    link::PeerLink::Arrival arrival = exposed_;
    arrival.data += taken_ * header_.chunk_bytes;
    arrival.bytes = bytes;
    const std::byte* const data = copied_to_host(job, arrival);
    if (!data) return false;
    note_arrival(bytes);
    sink_->take(job, taken_++, {data, bytes, false});
    return true;
  }

  /// Hands over a chunk that is not encoded, and with it those behind it that are there: one long
  /// copy uses the link better than several. A few are under way, two of them at once, so that one
  /// moves data while another begins or ends; what comes meanwhile makes the next one longer.
  bool take_run(Job& job, const link::PeerLink::Arrival& first) {
    std::uint64_t& run = run_ends_[runs_ % run_ends_.size()];
    if (run > sink_->settled(job)) return false;
    const std::uint64_t begin = taken_;
    std::size_t bytes = 0;
    for (link::PeerLink::Arrival next = first;;) {
      bytes += next.bytes;
      note_arrival(next.bytes);
      if (++taken_ == chunks_) break;
      next = job.peer_link.look(source_, slot_of(taken_), device_);
      if (next.state != link::Slot::there || next.device != first.device ||
          next.data != first.data + bytes || next.bytes != header_.chunk_raw_bytes(taken_)) {
        break;
      }
    }
    sink_->take_raw(job, begin, taken_ - begin, first.data, bytes, nullptr);
    run = taken_;
    ++runs_;
    return true;
  }

  void note_arrival(std::size_t bytes) {
    note_chunk(trace::Kind::arrive, header_, source_, taken_, began_ns_, bytes);
    began_ns_ = trace::timeline.now();
    wire_bytes_ += bytes;
  }

  /// The chunk in host memory, once it is there.
  const std::byte* copied_to_host(Job& job, const link::PeerLink::Arrival& arrival) {
    std::byte* const place = sink_->place_of(job, taken_, arrival.bytes);
    if (!place) return nullptr;
    if (!queue_) queue_ = job.devices.queue(arrival.device);
    if (queue_ && copying_ == 0) copying_ = queue_->copy(place, arrival.data, arrival.bytes);
    const gpu::State state = queue_ ? queue_->query(copying_) : gpu::State::failed;
    if (state == gpu::State::failed) give_up(job);
    if (state != gpu::State::done) return nullptr;
    copying_ = 0;
    return place;
  }

  /// The chunk is long in coming: has its sender ended?
  bool is_lost(Job& job) {
    constexpr std::uint64_t looks_a_question = 1 << 16;
    return ++looks_ % looks_a_question == 0 && !job.peer_link.lives(source_);
  }

  void give_up(Job& job) {
    code_ = job.device_code;
    trace::say("rank " + std::to_string(job.rank) + ": chunk " + std::to_string(taken_) + " of " +
               std::to_string(chunks_) + " from rank " + std::to_string(source_) +
               " did not come from its GPU");
  }

  const int device_;  ///< whose memory the sink fills; gpu::host where it takes chunks from there
  std::uint64_t began_ns_;
  std::uint64_t found_ns_ = 0;         ///< when an offer was
  std::uint64_t freed_ = 0;            ///< chunks whose memory the sender may use again
  std::uint64_t looks_ = 0;            ///< since something came
  std::uint32_t block_ = 0;            ///< to be opened
  link::PeerLink::Arrival exposed_{};  ///< all of the message; no data: it is not
  bool tells_ = false;                 ///< the device will, when it is done with that
  bool is_returned_ = false;
  std::uint64_t runs_ = 0;
  std::array<std::uint64_t, 3> run_ends_{};  ///< the chunk behind each of the latest
  gpu::Event copying_ = 0;                   ///< of the next chunk to host memory; 0: not begun
  QueueLease queue_;
  std::unique_ptr<ChunkReceive> by_mpi_;  ///< has the sink, where the sender had no memory
};

}  // namespace

std::unique_ptr<ChunkReceive> receive_peer_chunks(const wire::Header& header, int source,
                                                  int device, std::unique_ptr<ChunkSink> sink) {
  return std::make_unique<PeerReceive>(header, source, device, std::move(sink));
}

}  // namespace mpress::engine
