#include "core/stream_order.hpp"

#include <utility>

#include "core/runtime.hpp"
#include "gpu/loaded_gpu.hpp"

namespace mpress::engine {

std::shared_ptr<StreamOrder> StreamOrder::behind(Runtime& runtime, void* stream, int device) {
  Devices::Behind work = gpu::gpu()->work_of(device, stream);
  if (!work) return nullptr;
  return std::make_shared<StreamOrder>(runtime, device, stream, std::move(work));
}

std::shared_ptr<StreamOrder> StreamOrder::behind_defaults(Runtime& runtime, int device) {
  Devices::Behind work = default_work(device);
  if (!work) return nullptr;
  return std::make_shared<StreamOrder>(runtime, device, std::nullopt, std::move(work));
}

bool StreamOrder::is_reached() {
  if (state_ == gpu::State::pending) state_ = work_->query();
  return state_ != gpu::State::pending;
}

bool StreamOrder::await() {
  runtime_.progress.wait_until([this] { return is_reached(); });
  return state_ != gpu::State::failed;
}

QueueLease StreamOrder::take_queue(int device) const {
  return runtime_.devices.queue(device, work_, gpu::Priority::first);
}

}  // namespace mpress::engine
