#include "coll/symmetric/joint_kernel.hpp"

#include <atomic>
#include <utility>

#include "message/messaging.hpp"
#include "trace/record.hpp"

namespace mpress::engine {

std::uint64_t JointKernel::offer() {
  if (!order_ || !order_->has_stream()) return JointMemory::left_bit;
  is_endless_ = !messaging_.devices.has_kernel_in_stream.exchange(true);
  return is_endless_ ? JointMemory::left_bit : 0;
}

/// It is not left to the device, or not any more: the next one may be.
void JointKernel::leave_to_others() {
  if (std::exchange(is_endless_, false)) messaging_.devices.has_kernel_in_stream = false;
}

/// Is it left to the device?
void JointKernel::settle(std::span<const std::uint64_t> offers, std::size_t words) {
  bool is_left = true;
  for (std::size_t i = 0; i < offers.size(); i += words)
    is_left &= (offers[i] & JointMemory::left_bit) != 0;
  if (!is_left) leave_to_others();
}

/// None where the device has none, which is a failure of the device.
QueueLease JointKernel::take_queue(int device) {
  return order_ ? order_->take_queue(device)
                : messaging_.devices.queue(device, gpu::Priority::first);
}

/// A kernel that waits without end for a member that will not come gets the word to stop.
void JointKernel::stop_if_lost() {
  constexpr std::uint64_t interval_ns = 50'000'000;
  const std::uint64_t now = trace::now_ns();
  if (now - looked_ns_ < interval_ns) return;
  looked_ns_ = now;
  if (memory_.has_lost_member()) {
    std::atomic_ref(*memory_.undone()).store(1, std::memory_order_release);
  }
}

void JointKernel::end() {
  leave_to_others();
  queue_ = {};
  memory_.set_busy(false);
  number_ = 0;
}

}  // namespace mpress::engine
