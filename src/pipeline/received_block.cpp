#include "pipeline/received_block.hpp"

#include <cstring>

#include "core/runtime.hpp"

namespace mpress::engine {

void ReceivedBlock::begin(const Chunking& cut, int device, bool is_alone) {
  cut_ = cut;
  device_ = device;
  is_alone_ = is_alone;
  if (device_ != gpu::host) queue_ = runtime_.devices.queue(device_, gpu::Priority::first);
  if (find_staging_ && queue_) staging_ = find_staging_(cut_, device_);
  if (staging_.link) {
    is_published_by_device_ = true;
    is_made_.store(false, std::memory_order_relaxed);
  } else {
    cut_.may_be_elements = true;
  }
  make_chunks();
}

void ReceivedBlock::take(std::uint64_t chunk, const link::Arrived& arrived, bool is_elements) {
  taken_ = chunk + arrived.chunks;
  if (!is_given_up_ && !keep(chunk, arrived, is_elements)) {
    give_up(short_of_memory(runtime_, device_));
  }
}

/// What a device published may be longer than its elements, which not every link takes. False where
/// it cannot be kept.
bool ReceivedBlock::keep(std::uint64_t chunk, const link::Arrived& arrived, bool is_elements) {
  const bool is_too_long =
      !is_elements && cut_.may_be_elements && arrived.bytes >= cut_.raw_bytes(chunk);
  if (arrived.chunks != 1 || (is_too_long && !is_alone_)) return false;
  std::byte* const place = place_for(chunk, arrived.bytes);
  if (!place) return false;
  chunks_.push_back({arrived.bytes, is_elements});
  if (arrived.data == place) return true;
  if (device_ == gpu::host) {
    std::memcpy(place, arrived.data, arrived.bytes);
    return true;
  }
  if (!queue_) return false;
  gpu::Report* const report = report_of(chunk);
  std::uint32_t* const flag = report ? &report->sequence : nullptr;
  if (report) report->bytes = arrived.bytes;
  const bool is_by_kernel = arrived.device == device_;
  if (is_by_kernel && !flag) {
    copies_.push_back({place, arrived.data, arrived.bytes});
    if (copies_.size() == gpu::Queue::most_copies) launch();
    return true;
  }
  launch();
  const gpu::Event event = is_by_kernel
                               ? queue_->copy_near(place, arrived.data, arrived.bytes, flag)
                               : queue_->copy(place, arrived.data, arrived.bytes, flag);
  works_.push_back({event, taken_});
  return true;
}

void ReceivedBlock::skip(std::uint64_t chunk, Status status) {
  taken_ = chunk + 1;
  give_up(status);
}

/// What is under way goes on.
void ReceivedBlock::give_up(Status status) {
  if (std::exchange(is_given_up_, true)) return;
  if (is_alone_) failure_ = status;
  if (is_alone_ || staging_.link) block_failure_ = status;
}

void ReceivedBlock::launch() {
  if (copies_.empty()) return;
  works_.push_back({queue_->copy_near(copies_), taken_});
  copies_.clear();
}

std::uint64_t ReceivedBlock::settled() {
  for (; !works_.empty(); works_.pop_front()) {
    const gpu::State state = queue_->query(works_.front().event);
    if (state == gpu::State::pending) return settled_;
    if (state == gpu::State::failed) give_up(refused(runtime_, device_));
    settle(works_.front().end);
  }
  if (!copies_.empty()) return settled_;
  settle(taken_);
  if (!block_failure_.is_ok()) {
    status_.store(std::exchange(block_failure_, Status::ok));
    is_made_.store(true, std::memory_order_release);
  }
  return settled_;
}

/// Of those before it that were begun.
void ReceivedBlock::settle(std::uint64_t end) {
  for (; settled_ < end; ++settled_) {
    if (!is_given_up_) add(settled_, chunks_[settled_].bytes, chunks_[settled_].is_elements);
  }
  if (is_whole()) is_made_.store(true, std::memory_order_release);
}

}  // namespace mpress::engine
