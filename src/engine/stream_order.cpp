#include "engine/stream_order.hpp"

#include <cstdint>

#include "engine/job/job.hpp"

namespace mpress::engine {

std::shared_ptr<StreamOrder> StreamOrder::behind(Job& job, void* stream, int device) {
  QueueLease queue = job.devices.queue(device, gpu::Priority::first);
  if (!queue || !queue->wait_for(stream)) return nullptr;
  return std::make_shared<StreamOrder>(job, stream, std::move(queue));
}

bool StreamOrder::is_reached() {
  if (!queue_) return true;
  if (event_ == 0) {
    word_ = job_.devices.take_pinned(queue_->device(), 2 * sizeof(std::uint32_t));
    if (word_) {
      auto* const words = reinterpret_cast<std::uint32_t*>(word_.data());
      event_ = queue_->copy(words + 1, words, sizeof *words);
    }
  }
  state_ = word_ ? queue_->query(event_) : gpu::State::failed;
  if (state_ == gpu::State::pending) return false;
  queue_ = {};
  return true;
}

bool StreamOrder::await() {
  job_.progress.wait_until([this] { return is_reached(); });
  return state_ != gpu::State::failed;
}

}  // namespace mpress::engine
