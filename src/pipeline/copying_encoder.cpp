// Chunks of an opaque block, for slots of a link: its device copies those that are there; or the
// link sends them from the block's own memory, and nothing is copied.

#include <deque>
#include <utility>

#include "core/runtime.hpp"
#include "pipeline/encoder.hpp"
#include "pipeline/opaque_block.hpp"

namespace mpress::engine {
namespace {

class CopyingEncoder final : public Encoder {
 public:
  CopyingEncoder(Runtime& runtime, std::shared_ptr<const OpaqueBlock> opaque, Slots& slots,
                 bool is_zero_copy)
      : Encoder(runtime, opaque->cut(),
                {opaque->cut().type, nullptr, opaque->cut().count, opaque->device()}, slots),
        opaque_(std::move(opaque)),
        is_zero_copy_(is_zero_copy),
        is_published_by_device_(slots.report(0) != nullptr) {}

  ~CopyingEncoder() override {
    if (queue_ && made_ < cut_.chunks()) queue_->drain();
  }

  bool is_published_by_device() const override { return is_published_by_device_; }
  bool is_given() const override { return copied_ == cut_.chunks(); }

  gpu::State next(Made& made) override {
    while (!is_zero_copy_ && copied_ < opaque_->ready() && may_copy() && copy_next()) {
    }
    const gpu::State state = status_.is_ok() ? look() : gpu::State::failed;
    if (state == gpu::State::done) {
      const OpaqueBlock::Chunk chunk = opaque_->chunk(made_);
      made = {made_++, 1, chunk.bytes, !chunk.is_elements};
    }
    return state;
  }

 private:
  /// Is the next chunk in its slot? Not if the block will not have it.
  gpu::State look() {
    const bool is_under_way = is_zero_copy_ ? made_ < opaque_->ready() : !copies_.empty();
    if (!is_under_way) {
      status_ = opaque_->status();
      return status_.is_ok() ? gpu::State::pending : gpu::State::failed;
    }
    if (is_zero_copy_) return gpu::State::done;
    const gpu::State state = queue_->query(copies_.front());
    if (state == gpu::State::failed) status_ = refused(runtime_, region_.device);
    if (state == gpu::State::done) copies_.pop_front();
    return state;
  }

  /// To memory of the host a few at a time, where nothing is lost by that.
  bool may_copy() const {
    if (!slots_.is_free(copied_)) return false;
    return !slots_.is_driven() || !slots_.is_on_host() ||
           copies_.size() < copies_ahead(opaque_->chunk(copied_).bytes, runtime_.chunk_bytes);
  }

  /// False where there is no memory for it, or no queue.
  bool copy_next() {
    const OpaqueBlock::Chunk chunk = opaque_->chunk(copied_);
    std::byte* const place = slots_.place(copied_, chunk.bytes);
    if (!place) status_ = Status::no_memory;
    if (place && !queue_) {
      queue_ = runtime_.devices.queue(region_.device);
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

  const std::shared_ptr<const OpaqueBlock> opaque_;
  const bool is_zero_copy_;
  const bool is_published_by_device_;
  std::uint64_t copied_ = 0;  ///< chunks whose copies were given
  std::uint64_t made_ = 0;
  std::deque<gpu::Event> copies_;
  QueueLease queue_;  ///< destroyed first: what is under way uses what is above
};

}  // namespace

std::unique_ptr<Encoder> copying_encoder(Runtime& runtime,
                                         std::shared_ptr<const OpaqueBlock> opaque, Slots& slots,
                                         bool is_zero_copy) {
  return std::make_unique<CopyingEncoder>(runtime, std::move(opaque), slots, is_zero_copy);
}

}  // namespace mpress::engine
