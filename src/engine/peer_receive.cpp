// The receiving side of the peer link: the sink takes chunks from where the sender's device has
// them.

#include <array>
#include <string>
#include <utility>

#include "engine/chunk_events.hpp"
#include "engine/chunk_receive.hpp"
#include "engine/job.hpp"
#include "engine/patience.hpp"
#include "trace/message.hpp"

namespace mpress::engine {
namespace {

class PeerReceive final : public ChunkReceive {
 public:
  PeerReceive(const wire::Header& header, int source, int device, std::unique_ptr<ChunkSink> sink)
      : ChunkReceive(header, source, std::move(sink)),
        device_(sink_->reads_devices() ? device : gpu::host),
        began_ns_(trace::timeline.now()) {}

  trace::Way way() const override { return trace::Way::peer; }

  bool advance(Job& job) override {
    while (taken_ < chunks_ && !is_broken() && take_next(job)) {
    }
    const std::uint64_t settled = sink_->settled(job);
    for (; freed_ < settled; ++freed_) job.peer_link.take(source_, parcel_of(freed_));
    if (!is_broken()) return settled == chunks_;
    if (settled < taken_) return false;
    for (; freed_ < chunks_; ++freed_) job.peer_link.take(source_, parcel_of(freed_));
    return true;
  }

  void finish(Job& job) override {
    for (Patience patience; !advance(job);) patience.pause();
  }

 private:
  bool is_broken() const { return code_ != MPI_SUCCESS; }
  std::uint64_t parcel_of(std::uint64_t chunk) const { return header_.peer_parcel - 1 + chunk; }

  /// Hands the next chunk to the sink. False where it is not there yet, or the sink has no room.
  bool take_next(Job& job) {
    const bool reads_devices = device_ != gpu::host;
    if (reads_devices && !sink_->has_room(job, taken_)) return false;
    const auto arrival = job.peer_link.look(source_, parcel_of(taken_), device_);
    if (arrival.state == link::Parcel::planned) {
      if (is_lost(job)) give_up(job);
      return false;
    }
    if (arrival.state == link::Parcel::failed || arrival.bytes > header_.chunk_raw_bytes(taken_)) {
      give_up(job);
      return false;
    }
    const std::byte* data = arrival.data;
    if (!reads_devices) {
      data = copied_to_host(job, arrival);
      if (!data) return false;
    }
    looks_ = 0;
    if (reads_devices && arrival.device == device_ &&
        arrival.bytes == header_.chunk_raw_bytes(taken_)) {
      return take_run(job, arrival);
    }
    note_arrival(arrival.bytes);
    sink_->take(job, taken_++, data, arrival.bytes);
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
      if (++taken_ == chunks_ || !sink_->has_room(job, taken_)) break;
      next = job.peer_link.look(source_, parcel_of(taken_), device_);
      if (next.state != link::Parcel::there || next.device != first.device ||
          next.data != first.data + bytes || next.bytes != header_.chunk_raw_bytes(taken_)) {
        break;
      }
    }
    sink_->take_raw(job, begin, taken_ - begin, first.data, bytes);
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
    std::byte* const place = sink_->place_of(job, taken_);
    if (!lane_) lane_ = job.devices.lane(arrival.device);
    if (lane_ && copying_ == 0) copying_ = lane_->copy(place, arrival.data, arrival.bytes);
    const gpu::State state = lane_ ? lane_->look(copying_) : gpu::State::failed;
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
  std::uint64_t freed_ = 0;  ///< chunks whose memory the sender may use again
  std::uint64_t looks_ = 0;  ///< since something came
  std::uint64_t runs_ = 0;
  std::array<std::uint64_t, 3> run_ends_{};  ///< the chunk behind each of the latest
  gpu::Ticket copying_ = 0;                  ///< of the next chunk to host memory; 0: not begun
  LaneUse lane_;
};

}  // namespace

std::unique_ptr<ChunkReceive> receive_peer_chunks(const wire::Header& header, int source,
                                                  int device, std::unique_ptr<ChunkSink> sink) {
  return std::make_unique<PeerReceive>(header, source, device, std::move(sink));
}

}  // namespace mpress::engine
