// Chunks of a region on a device, for slots that are not near: encoding, the copy to the slots and
// what follows overlap, each at another chunk.

#include <array>
#include <utility>
#include <vector>

#include "core/runtime.hpp"
#include "gpu/codec_queue.hpp"
#include "pipeline/encoder.hpp"

namespace mpress::engine {
namespace {

constexpr std::size_t encoding_ahead = 4;  ///< chunks
constexpr std::size_t copying_ahead = 3;

class StagingEncoder final : public Encoder {
 public:
  StagingEncoder(Runtime& runtime, const Chunking& cut, const Region& region, Slots& slots)
      : Encoder(runtime, cut, region, slots), work_(cut.chunks()) {
    for (std::uint64_t chunk = 0; chunk < work_.size(); ++chunk) {
      work_[chunk].bytes = cut.raw_bytes(chunk);
      work_[chunk].from = region.data + cut.offset(chunk);
    }
  }

  /// False where memory or a queue is lacking.
  bool open() {
    copying_ = runtime_.devices.queue(region_);
    if (!copying_) return false;
    if (!cut_.encodes()) return true;
    encoding_ = runtime_.devices.queue(region_);
    for (std::size_t i = 0; i < std::min(payloads_.size(), work_.size()); ++i) {
      payloads_[i] = runtime_.devices.take(region_.device, cut_.payload_room());
      if (!payloads_[i]) return false;
    }
    return static_cast<bool>(encoding_);
  }

  gpu::State next(Made& made) override {
    const std::uint64_t begin = trace::now_ns();
    const gpu::State state = advance(made);
    took_ns_ += trace::now_ns() - begin;
    return state;
  }

 private:
  struct Work {
    gpu::Event encoded = 0;
    gpu::Event copied = 0;          ///< 0: nothing is copied
    std::uint64_t encoding_ns = 0;  ///< when each was given to its queue
    std::uint64_t copying_ns = 0;
    bool is_encoded = false;
    bool was_looked_at = false;
    const std::byte* from = nullptr;  ///< what is to be copied
    std::size_t bytes = 0;
  };

  gpu::State advance(Made& made) {
    start_encoding();
    while (copied_ < work_.size() && copied_ <= made_ + copying_ahead && start_copying()) {
    }
    if (!status_.is_ok()) return gpu::State::failed;
    if (made_ == copied_) return gpu::State::pending;
    const Work& work = work_[made_];
    if (work.copied != 0) {
      const gpu::State state = copying_->query(work.copied);
      if (state == gpu::State::failed) status_ = refused(runtime_, region_.device);
      if (state != gpu::State::done) return state;
      cut_.note(trace::Kind::copy_out, made_, work.copying_ns, work.bytes, region_.device);
    }
    made = {made_++, 1, work.bytes, work.is_encoded};
    start_encoding();
    return gpu::State::done;
  }

  /// Payloads of chunks that were made have been copied, so their buffers are free.
  void start_encoding() {
    if (!cut_.encodes()) return;
    for (; encoded_ < work_.size() && encoded_ < made_ + payloads_.size(); ++encoded_) {
      work_[encoded_].encoding_ns = trace::timeline.now();
      work_[encoded_].encoded = encoding_->codecs().encode(
          cut_.spec, cut_.type, work_[encoded_].from, cut_.elements(encoded_), payload(encoded_));
    }
  }

  /// The next chunk, to its slot. False where it is not encoded yet, or has no slot now.
  bool start_copying() {
    Work& work = work_[copied_];
    if (cut_.encodes() && !work.was_looked_at && !look_at_encoder(copied_)) return false;
    if (work.is_encoded || slots_.takes_elements()) {
      std::byte* const place = slots_.place(copied_, work.bytes);
      if (!place) {
        // No send waits for a receiver to give memory back.
        if (made_ == copied_) status_ = Status::no_memory;
        return false;
      }
      work.copying_ns = trace::timeline.now();
      work.copied = copying_->copy(place, work.from, work.bytes);
    }
    ++copied_;
    return true;
  }

  /// Is it encoded? A device that refuses is an error of the message.
  bool look_at_encoder(std::uint64_t chunk) {
    Work& work = work_[chunk];
    if (chunk >= encoded_) return false;
    gpu::Outcome outcome;
    const gpu::State state = encoding_->query(work.encoded, &outcome);
    if (state == gpu::State::failed) status_ = refused(runtime_, region_.device);
    if (state != gpu::State::done) return false;
    work.was_looked_at = true;
    work.is_encoded = slots_.pays(outcome.bytes, work.bytes);
    if (work.is_encoded) {
      work.from = payload(chunk);
      work.bytes = outcome.bytes;
    }
    cut_.note(trace::Kind::encode, chunk, work.encoding_ns, work.bytes, region_.device);
    return true;
  }

  std::byte* payload(std::uint64_t chunk) const {
    return payloads_[chunk % payloads_.size()].data();
  }

  std::array<memory::Buffer, encoding_ahead> payloads_;
  std::vector<Work> work_;
  std::uint64_t encoded_ = 0;  ///< chunks whose encoding has begun
  std::uint64_t copied_ = 0;   ///< chunks whose copy has begun
  std::uint64_t made_ = 0;
  // Destroyed first: what is under way uses the buffers above.
  QueueLease encoding_;
  QueueLease copying_;
};

}  // namespace

std::unique_ptr<Encoder> staging_encoder(Runtime& runtime, const Chunking& cut,
                                         const Region& region, Slots& slots) {
  auto encoder = std::make_unique<StagingEncoder>(runtime, cut, region, slots);
  if (!encoder->open()) return nullptr;
  return encoder;
}

}  // namespace mpress::engine
