#include "message/receive_buffer.hpp"

#include <cstring>

#include "core/staging.hpp"
#include "memory/kind.hpp"
#include "message/message.hpp"
#include "message/messaging.hpp"
#include "trace/timeline.hpp"

namespace mpress::engine {

void ReceiveBuffer::describe(void* data, std::int64_t count, const Layout* layout,
                             bool is_ordered) {
  data_ = static_cast<std::byte*>(data);
  count_ = count;
  layout_ = layout;
  is_ordered_ = is_ordered;
  if (layout && count >= 0) capacity_ = static_cast<std::size_t>(count) * layout->size;
  is_located_ = capacity_ == 0;
}

void ReceiveBuffer::locate() {
  if (is_located_) return;
  const Location location = engine::locate(messaging_, data_, *layout_);
  device_ = location.device;
  is_readable_ = location.is_readable;
  is_located_ = true;
  if (messaging_.raw_is_mpis) messaging_.locations.note(device_ != gpu::host);
  renew();
}

bool ReceiveBuffer::may_be_located_late() const {
  return messaging_.raw_is_mpis && layout_->contiguous && !trace::timeline.is_on() &&
         !memory::is_own(data_) && !messaging_.forecast.expects(capacity_) &&
         !messaging_.locations.is_due();
}

bool ReceiveBuffer::is_unpacked_on_device() const {
  return device_ != gpu::host && packs_for_mpi(messaging_, *layout_);
}

bool ReceiveBuffer::is_on_device() const {
  return is_located_ ? device_ != gpu::host : messaging_.locations.last_was_on_device();
}

/// An MPI that takes device memory orders by itself what it puts where the program wants it: there
/// destination() asks once a frame has come. It puts nothing in gaps, where mpress lays out each
/// message.
void ReceiveBuffer::renew() {
  if (is_ordered_ || !layout_ || (messaging_.gpu_aware && layout_->contiguous)) return;
  behind_ = device_ == known_of_ ? known_ : default_work(device_);
}

Destination ReceiveBuffer::destination(bool is_shared) {
  if (!is_ordered_ && messaging_.gpu_aware && layout_->contiguous) behind_ = default_work(device_);
  if (behind_ && behind_->query() == gpu::State::done) behind_ = nullptr;
  const bool is_reached = is_readable_ || device_ != gpu::host;
  return {data_, device_, layout_->contiguous && is_reached && !is_shared, behind_};
}

Status ReceiveBuffer::lay_out(const std::byte* packed, std::size_t bytes) const {
  if (device_ != gpu::host) {
    return unpack_to_device(messaging_, device_, packed, bytes, data_, count_, *layout_, behind_);
  }
  if (layout_->contiguous && is_readable_) {
    if (bytes > 0) std::memcpy(data_, packed, bytes);
    return Status::ok;
  }
  return layout_->unpack(packed, bytes, data_, count_, is_readable_);
}

}  // namespace mpress::engine
