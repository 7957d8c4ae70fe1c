#include "pipeline/keeper.hpp"

#include <cstring>
#include <utility>

#include "core/runtime.hpp"

namespace mpress::engine {

Keeper::Keeper(Runtime& runtime, const Chunking& cut, std::shared_ptr<ReceivedBlock> opaque,
               int device, bool is_alone)
    : runtime_(runtime), opaque_(std::move(opaque)), device_(device), is_alone_(is_alone) {
  if (device_ != gpu::host) queue_ = runtime_.devices.queue(device_, gpu::Priority::first);
  opaque_->begin(cut, device_, !queue_);
}

void Keeper::take(std::uint64_t chunk, const link::Arrived& arrived, bool is_elements) {
  taken_ = chunk + arrived.chunks;
  if (!is_given_up_ && !begin(chunk, arrived, is_elements)) {
    give_up(short_of_memory(runtime_, device_));
  }
}

/// What a device published may be longer than its elements, which not every link takes. False where
/// it cannot be kept.
bool Keeper::begin(std::uint64_t chunk, const link::Arrived& arrived, bool is_elements) {
  const Chunking& cut = opaque_->cut();
  const bool is_too_long =
      !is_elements && cut.may_be_elements && arrived.bytes >= cut.raw_bytes(chunk);
  if (arrived.chunks != 1 || (is_too_long && !is_alone_)) return false;
  std::byte* const place = opaque_->place_for(chunk, arrived.bytes);
  if (!place) return false;
  chunks_.push_back({arrived.bytes, is_elements});
  if (arrived.data == place) return true;
  if (device_ == gpu::host) {
    std::memcpy(place, arrived.data, arrived.bytes);
    return true;
  }
  if (!queue_) return false;
  std::uint32_t* const flag = opaque_->flag_for(chunk, arrived.bytes);
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

void Keeper::skip(std::uint64_t chunk, Status status) {
  taken_ = chunk + 1;
  give_up(status);
}

/// What is under way goes on.
void Keeper::give_up(Status status) {
  if (std::exchange(is_given_up_, true)) return;
  if (is_alone_) status_ = status;
  if (is_alone_ || opaque_->home().link) block_status_ = status;
}

void Keeper::tell_failure() {
  if (!block_status_.is_ok()) opaque_->give_up(std::exchange(block_status_, Status::ok));
}

void Keeper::launch() {
  if (copies_.empty()) return;
  works_.push_back({queue_->copy_near(copies_), taken_});
  copies_.clear();
}

std::uint64_t Keeper::settled() {
  for (; !works_.empty(); works_.pop_front()) {
    const gpu::State state = queue_->query(works_.front().event);
    if (state == gpu::State::pending) return settled_;
    if (state == gpu::State::failed) give_up(refused(runtime_, device_));
    note(works_.front().end);
  }
  if (copies_.empty()) {
    note(taken_);
    tell_failure();
  }
  return settled_;
}

/// Of those before it that were begun.
void Keeper::note(std::uint64_t end) {
  for (; settled_ < end; ++settled_) {
    if (is_given_up_) continue;
    opaque_->note(settled_, chunks_[settled_].bytes, chunks_[settled_].is_elements);
  }
}

void Keeper::drain() {
  if (queue_) queue_->drain();
}

}  // namespace mpress::engine
