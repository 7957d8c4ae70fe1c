// Chunks that are copied to slots of a link as they are, each by itself: those of an opaque block,
// when they are there, and elements of a device's to memory of the host. Or the link sends a block
// from where it is, and nothing is copied.

#include <deque>
#include <utility>

#include "core/runtime.hpp"
#include "pipeline/encoder.hpp"
#include "pipeline/opaque_block.hpp"

namespace mpress::engine {
namespace {

class CopyingEncoder final : public Encoder {
 public:
  CopyingEncoder(Runtime& runtime, const Chunking& cut, const Region& region, Slots& slots,
                 std::shared_ptr<const OpaqueBlock> opaque = nullptr, bool is_zero_copy = false)
      : Encoder(runtime, cut, region, slots),
        opaque_(std::move(opaque)),
        is_zero_copy_(is_zero_copy),
        is_published_by_device_(slots.report(0) != nullptr) {}

  /// Gives a queue what may be copied now. False where the device refuses.
  bool open() {
    queue_ = runtime_.devices.queue(region_);
    if (!queue_) return false;
    copy_ready();
    return copies_.empty() || queue_->query(copies_.front()) != gpu::State::failed;
  }

  bool is_published_by_device() const override { return is_published_by_device_; }
  bool is_given() const override { return copied_ == cut_.chunks(); }

  gpu::State next(Made& made) override {
    if (!is_zero_copy_) copy_ready();
    const gpu::State state = status_.is_ok() ? look() : gpu::State::failed;
    if (state == gpu::State::done) {
      const OpaqueBlock::Chunk chunk = this->chunk(made_);
      if (!opaque_) {
        cut_.note(trace::Kind::copy_out, made_, begin_ns_, chunk.bytes, region_.device);
      }
      made = {made_++, 1, chunk.bytes, !chunk.is_elements};
      if (made_ == cut_.chunks()) took_ns_ = trace::now_ns() - begin_ns_;
    }
    return state;
  }

 private:
  std::uint64_t ready() const { return opaque_ ? opaque_->ready() : cut_.chunks(); }
  OpaqueBlock::Chunk chunk(std::uint64_t i) const {
    if (opaque_) return opaque_->chunk(i);
    return {region_.data + cut_.offset(i), cut_.raw_bytes(i), true};
  }

  /// Is the next chunk in its slot? Not if the block will not have it.
  gpu::State look() {
    const bool is_under_way = is_zero_copy_ ? made_ < ready() : !copies_.empty();
    if (!is_under_way) {
      if (opaque_) status_ = opaque_->status();
      return status_.is_ok() ? gpu::State::pending : gpu::State::failed;
    }
    if (is_zero_copy_) return gpu::State::done;
    const gpu::State state = queue_->query(copies_.front());
    if (state == gpu::State::failed) status_ = refused(runtime_, region_.device);
    if (state == gpu::State::done) copies_.pop_front();
    return state;
  }

  void copy_ready() {
    while (copied_ < ready() && may_copy() && copy_next()) {
    }
  }

  /// To memory of the host a few at a time, where nothing is lost by that.
  bool may_copy() const {
    if (!slots_.is_free(copied_)) return false;
    return !slots_.is_driven() || !slots_.is_on_host() ||
           copies_.size() < copies_ahead(chunk(copied_).bytes, runtime_.chunk_bytes);
  }

  /// False where there is no memory for it, or no queue.
  bool copy_next() {
    const OpaqueBlock::Chunk chunk = this->chunk(copied_);
    std::byte* const place = slots_.place(copied_, chunk.bytes);
    if (!place) status_ = Status::no_memory;
    if (place && !queue_) {
      queue_ = runtime_.devices.queue(region_);
      if (!queue_) status_ = refused(runtime_, region_.device);
    }
    if (!status_.is_ok()) return false;
    gpu::Report* const report = slots_.report(copied_);
    std::uint32_t* const flag = report ? &report->sequence : nullptr;
    if (report) report->bytes = chunk.bytes;
    ++copied_;
    if (slots_.is_near() && !slots_.is_on_host()) {
      copies_.push_back(queue_->copy_near(place, chunk.data, chunk.bytes, flag));
    } else if (is_given()) {
      copies_.push_back(queue_->copy(place, chunk.data, chunk.bytes, flag));
    } else {
      copies_.push_back(queue_->copy_ahead(place, chunk.data, chunk.bytes, flag));
    }
    return true;
  }

  const std::shared_ptr<const OpaqueBlock> opaque_;  ///< null: the region's elements
  const bool is_zero_copy_;
  const bool is_published_by_device_;
  const std::uint64_t begin_ns_ = trace::now_ns();
  std::uint64_t copied_ = 0;  ///< chunks whose copies were given
  std::uint64_t made_ = 0;
  std::deque<gpu::Event> copies_;
  QueueLease queue_;  ///< destroyed first: what is under way uses what is above
};

}  // namespace

std::unique_ptr<Encoder> copying_encoder(Runtime& runtime, const Chunking& cut,
                                         const Region& region, Slots& slots) {
  auto encoder = std::make_unique<CopyingEncoder>(runtime, cut, region, slots);
  if (!encoder->open()) return nullptr;
  return encoder;
}

std::unique_ptr<Encoder> copying_encoder(Runtime& runtime,
                                         std::shared_ptr<const OpaqueBlock> opaque, Slots& slots,
                                         bool is_zero_copy) {
  const Chunking& cut = opaque->cut();
  const Region region{cut.type, nullptr, cut.count, opaque->device()};
  return std::make_unique<CopyingEncoder>(runtime, cut, region, slots, std::move(opaque),
                                          is_zero_copy);
}

}  // namespace mpress::engine
