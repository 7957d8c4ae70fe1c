#include "engine/stream_order.hpp"

#include <utility>

#include "engine/job/job.hpp"
#include "gpu/loaded_gpu.hpp"

namespace mpress::engine {

std::shared_ptr<StreamOrder> StreamOrder::behind(Job& job, void* stream, int device) {
  Devices::Behind work = gpu::gpu()->work_of(device, stream);
  if (!work) return nullptr;
  return std::make_shared<StreamOrder>(job, device, stream, std::move(work));
}

std::shared_ptr<StreamOrder> StreamOrder::behind_defaults(Job& job, int device) {
  Devices::Behind work = default_work(device);
  if (!work) return nullptr;
  return std::make_shared<StreamOrder>(job, device, std::nullopt, std::move(work));
}

bool StreamOrder::is_reached() {
  if (state_ == gpu::State::pending) state_ = work_->query();
  return state_ != gpu::State::pending;
}

bool StreamOrder::await() {
  job_.progress.wait_until([this] { return is_reached(); });
  return state_ != gpu::State::failed;
}

QueueLease StreamOrder::take_queue(int device) const {
  return job_.devices.queue(device, work_, gpu::Priority::first);
}

}  // namespace mpress::engine
