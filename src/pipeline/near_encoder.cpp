// Chunks of a region on a device, for slots that its queues write to at full speed: all work is
// given at once, alone or with that of other regions, and the device publishes it where it can.

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/runtime.hpp"
#include "link/link.hpp"
#include "pipeline/encoder.hpp"
#include "pipeline/launch_batch.hpp"

namespace mpress::engine {
namespace {

class NearEncoder final : public Encoder {
 public:
  using Encoder::Encoder;

  /// Others may have the slots and the elements then.
  ~NearEncoder() override {
    if (launch_ && ended_ < work_.size()) launch_->withdraw(first_piece_, cut_.chunks());
  }

  /// Gives a queue all of the work, or `batch` what is to be encoded. False where the device
  /// refuses.
  bool open(LaunchBatch* batch) {
    given_ns_ = trace::now_ns();
    is_published_by_device_ = slots_.report(0) != nullptr;
    if (cut_.encodes()) {
      if (!start_encoding(batch)) return false;
    } else {
      queue_ = runtime_.devices.queue(region_);
      if (!queue_) return false;
      start_copying();
    }
    return look(work_[0], nullptr) != gpu::State::failed;
  }

  bool is_published_by_device() const override { return is_published_by_device_; }

  gpu::State next(Made& made) override {
    Work& work = work_[ended_];
    gpu::Outcome outcome;
    const gpu::State state = look(work, &outcome);
    if (state == gpu::State::failed) {
      // What is under way ends first, as others may have the memory then.
      status_ = refused(runtime_, region_.device);
      if (launch_) launch_->drain();
      if (queue_) queue_->drain();
    }
    if (state != gpu::State::done) return state;
    const bool is_payload = cut_.encodes() && !work.is_raw;
    const std::size_t raw_bytes = cut_.raw_bytes(work.first);
    if (is_payload && !is_published_by_device_ && !slots_.pays(outcome.bytes, raw_bytes)) {
      // The payload makes way for its elements.
      work.queue = &copying_queue();
      work.event = work.queue->copy_near(slots_.place(work.first, raw_bytes),
                                         region_.data + cut_.offset(work.first), raw_bytes);
      work.is_raw = true;
      return gpu::State::pending;
    }
    made = {work.first, work.chunks, 0, is_payload};
    const std::uint64_t given_ns = launch_ ? launch_->launched_ns() : given_ns_;
    for (std::uint64_t chunk = work.first; chunk < work.first + work.chunks; ++chunk) {
      const std::size_t bytes = is_payload ? outcome.bytes : cut_.raw_bytes(chunk);
      cut_.note(cut_.encodes() ? trace::Kind::encode : trace::Kind::copy_out, chunk, given_ns,
                bytes, region_.device);
      made.bytes += bytes;
    }
    if (++ended_ == work_.size()) took_ns_ = trace::now_ns() - given_ns;
    return gpu::State::done;
  }

 private:
  /// A chunk that is encoded, or a run of those that are copied.
  struct Work {
    std::uint64_t first;
    std::uint64_t chunks;
    gpu::Queue* queue = nullptr;  ///< that copies it; null: it is encoded by the launch
    gpu::Event event = 0;
    bool is_raw = false;  ///< its elements go, as its payload does not pay
  };

  gpu::State look(const Work& work, gpu::Outcome* outcome) {
    return work.queue ? work.queue->query(work.event, outcome)
                      : launch_->query(first_piece_ + work.first, outcome);
  }

  /// Of what does not wait for others' work.
  gpu::Queue& copying_queue() {
    if (!queue_ && launch_->pieces() > work_.size()) queue_ = runtime_.devices.queue(region_);
    return queue_ ? *queue_ : launch_->queue();
  }

  /// All chunks in one go: launches take longer than short ones do. The first is ready when its
  /// share of the time has passed. A payload that is larger than its elements stays as it is where
  /// the device publishes it, which asks no host. Chunks that have one range do not go with others:
  /// they would wait until the ranges of all were found.
  bool start_encoding(LaunchBatch* batch) {
    const std::uint64_t chunks = cut_.chunks();
    std::vector<gpu::Piece> pieces;
    pieces.reserve(chunks);
    for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
      pieces.push_back({region_.data + cut_.offset(chunk), cut_.elements(chunk),
                        slots_.place(chunk, cut_.room()), slots_.report(chunk)});
    }
    for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) work_.push_back({chunk, 1});
    const bool has_range = cut_.spec.bound == Bound::rel && chunks > 1;
    if (batch && !has_range) {
      launch_ = batch->add(region_, cut_.spec, cut_.type, pieces, first_piece_);
      return launch_ != nullptr;
    }
    QueueLease queue = runtime_.devices.queue(region_);
    if (!queue) return false;
    launch_ = std::make_shared<Launch>(std::move(queue), cut_.spec, cut_.type, gpu::RangeOf::call);
    first_piece_ = launch_->add(pieces);
    launch_->launch();
    return true;
  }

  void start_copying() {
    const auto chunks = static_cast<std::uint32_t>(cut_.chunks());
    for (std::uint32_t run = 0, end = 0; run < chunks; run = end) {
      end = std::min(link::Transfer::run_behind(run), chunks);
      const std::size_t bytes = std::min(cut_.offset(end), cut_.bytes()) - cut_.offset(run);
      std::uint32_t* const flag = is_published_by_device_ ? &slots_.report(run)->sequence : nullptr;
      const gpu::Event event = queue_->copy_near(slots_.place(run, cut_.raw_bytes(run)),
                                                 region_.data + cut_.offset(run), bytes, flag);
      work_.push_back({run, end - run, &*queue_, event});
    }
  }

  std::vector<Work> work_;
  std::size_t ended_ = 0;  ///< pieces of work
  std::uint64_t given_ns_ = 0;
  bool is_published_by_device_ = false;
  std::shared_ptr<Launch> launch_;  ///< of what is encoded
  std::size_t first_piece_ = 0;     ///< of it that is this encoder's
  QueueLease queue_;                ///< of what is copied
};

}  // namespace

std::unique_ptr<Encoder> near_encoder(Runtime& runtime, const Chunking& cut, const Region& region,
                                      Slots& slots, LaunchBatch* batch) {
  auto encoder = std::make_unique<NearEncoder>(runtime, cut, region, slots);
  if (!encoder->open(batch)) return nullptr;
  return encoder;
}

}  // namespace mpress::engine
