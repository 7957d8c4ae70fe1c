#include "coll/reduce/own_range.hpp"

#include <new>

#include "gpu/codec_queue.hpp"
#include "message/messaging.hpp"

namespace mpress::engine {

void OwnRange::fail(Status status) {
  status_ = status;
  set_empty();
}

void OwnRange::begin(ElementType type, const std::byte* elements, std::size_t count, int device) {
  if (device == gpu::host) {
    range_ = codec::finite_range(type, elements, count);
    return;
  }
  device_ = device;
  extent_ = messaging_.devices.take_pinned(device, sizeof(Extent));
  queue_ = messaging_.devices.queue(device);
  if (!extent_ || !queue_) return fail(short_of_memory(messaging_, device));
  auto* const extent = new (extent_.data()) Extent;
  event_ = queue_->codecs().extent(type, elements, count, extent, 1);
}

bool OwnRange::advance() {
  if (range_) return true;
  const gpu::State state = queue_->query(event_);
  if (state == gpu::State::pending) return false;
  if (state == gpu::State::failed) {
    fail(refused(messaging_, device_));
  } else {
    range_ = codec::range_of(*reinterpret_cast<const Extent*>(extent_.data()));
  }
  queue_ = {};
  extent_.reset();
  return true;
}

}  // namespace mpress::engine
