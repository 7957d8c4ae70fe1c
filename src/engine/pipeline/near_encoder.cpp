// Chunks of a region on a device, for slots that its queues write to at full speed: all work is
// given at once, and the device publishes it where it can.

#include <algorithm>
#include <vector>

#include "engine/job.hpp"
#include "engine/pipeline/encoder.hpp"
#include "link/link.hpp"

namespace mpress::engine {
namespace {

class NearEncoder final : public Encoder {
 public:
  using Encoder::Encoder;

  /// Gives a queue all of the work. False where the device refuses.
  bool open() {
    queue_ = job_.devices.queue(region_.device);
    if (!queue_) return false;
    given_ns_ = trace::now_ns();
    is_published_by_device_ = slots_.report(0) != nullptr;
    if (cut_.encodes()) {
      start_encoding();
    } else if (slots_.is_on_host()) {
      if (!start_copying_out()) return false;
    } else {
      start_copying();
    }
    return queue_of(work_[0]).query(work_[0].event) != gpu::State::failed;
  }

  bool is_published_by_device() const override { return is_published_by_device_; }

  gpu::State next(Made& made) override {
    Work& work = work_[ended_];
    gpu::Outcome outcome;
    const gpu::State state = queue_of(work).query(work.event, &outcome);
    if (state == gpu::State::failed) {
      // What is under way ends first, as others may have the memory then.
      code_ = refused(job_, region_.device);
      queue_->drain();
      if (other_queue_) other_queue_->drain();
    }
    if (state != gpu::State::done) return state;
    const bool is_payload = cut_.encodes() && !work.is_raw;
    const std::size_t raw_bytes = cut_.raw_bytes(work.first);
    if (is_payload && !is_published_by_device_ && !slots_.pays(outcome.bytes, raw_bytes)) {
      // The payload makes way for its elements.
      work.event = queue_of(work).copy_near(slots_.place(work.first, raw_bytes),
                                            region_.data + cut_.offset(work.first), raw_bytes);
      work.is_raw = true;
      return gpu::State::pending;
    }
    made = {work.first, work.chunks, 0, is_payload};
    for (std::uint64_t chunk = work.first; chunk < work.first + work.chunks; ++chunk) {
      const std::size_t bytes = is_payload ? outcome.bytes : cut_.raw_bytes(chunk);
      cut_.note(cut_.encodes() ? trace::Kind::encode : trace::Kind::copy_out, chunk, given_ns_,
                bytes, region_.device);
      made.bytes += bytes;
    }
    if (++ended_ == work_.size()) took_ns_ = trace::now_ns() - given_ns_;
    return gpu::State::done;
  }

 private:
  /// A chunk that is encoded, or a run of those that are copied.
  struct Work {
    std::uint64_t first;
    std::uint64_t chunks;
    gpu::Event event;
    bool is_others = false;  ///< given to the other queue
    bool is_raw = false;     ///< its elements go, as its payload does not pay
  };

  gpu::Queue& queue_of(const Work& work) const { return work.is_others ? *other_queue_ : *queue_; }

  /// All chunks in one go: launches take longer than short ones do. The first is ready when its
  /// share of the time has passed. A payload that is larger than its elements stays as it is where
  /// the device publishes it, which asks nobody.
  void start_encoding() {
    const std::uint64_t chunks = cut_.chunks();
    std::vector<gpu::Piece> pieces;
    pieces.reserve(chunks);
    for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
      pieces.push_back({region_.data + cut_.offset(chunk), cut_.elements(chunk),
                        slots_.place(chunk, cut_.room()), slots_.report(chunk)});
    }
    const gpu::Event first = queue_->encode(cut_.spec, cut_.type, pieces);
    for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
      work_.push_back({chunk, 1, first + chunk});
    }
  }

  void start_copying() {
    const auto chunks = static_cast<std::uint32_t>(cut_.chunks());
    for (std::uint32_t run = 0, end = 0; run < chunks; run = end) {
      end = std::min(link::Transfer::run_behind(run), chunks);
      const std::size_t bytes = std::min(cut_.offset(end), cut_.bytes()) - cut_.offset(run);
      gpu::Event event = queue_->copy_near(slots_.place(run, cut_.raw_bytes(run)),
                                           region_.data + cut_.offset(run), bytes);
      if (is_published_by_device_) event = queue_->write(&slots_.report(run)->sequence, 1);
      work_.push_back({run, end - run, event});
    }
  }

  /// To memory of the host: each chunk is told of behind its own copy. Two queues by turns, so that
  /// one copies while the other tells.
  bool start_copying_out() {
    if (cut_.chunks() > 1) {
      other_queue_ = job_.devices.queue(region_.device);
      if (!other_queue_) return false;
    }
    for (std::uint64_t chunk = 0; chunk < cut_.chunks(); ++chunk) {
      const std::size_t bytes = cut_.raw_bytes(chunk);
      std::uint32_t* const flag =
          is_published_by_device_ ? &slots_.report(chunk)->sequence : nullptr;
      Work work{chunk, 1, 0, chunk % 2 == 1};
      work.event = queue_of(work).copy(slots_.place(chunk, bytes),
                                       region_.data + cut_.offset(chunk), bytes, flag);
      work_.push_back(work);
    }
    return true;
  }

  std::vector<Work> work_;
  std::size_t ended_ = 0;  ///< pieces of work
  std::uint64_t given_ns_ = 0;
  bool is_published_by_device_ = false;
  QueueLease queue_;
  QueueLease other_queue_;
};

}  // namespace

std::unique_ptr<Encoder> near_encoder(Job& job, const Chunking& cut, const Region& region,
                                      Slots& slots) {
  auto encoder = std::make_unique<NearEncoder>(job, cut, region, slots);
  if (!encoder->open()) return nullptr;
  return encoder;
}

}  // namespace mpress::engine
