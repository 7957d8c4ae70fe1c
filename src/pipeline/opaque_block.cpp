#include "pipeline/opaque_block.hpp"

#include <algorithm>

#include "core/runtime.hpp"
#include "wire/frame.hpp"

namespace mpress::engine {
namespace {

/// Before each chunk: room for a frame's header, and payloads are aligned for kernels.
constexpr std::size_t front = 256;
static_assert(front >= wire::header_bytes);

/// Behind it: a frame's padding.
constexpr std::size_t back = wire::size_grain + wire::size_above_grain;

}  // namespace

OpaqueBlock::~OpaqueBlock() {
  if (!staging_.link || is_staging_over_) return;
  if (!is_announced_) {
    staging_.link->abandon(staging_.transfer);
  } else if (is_whole()) {
    staging_.link->release(staging_.transfer);
  } else {
    staging_.link->fail(staging_.transfer);
  }
}

std::byte* OpaqueBlock::room_of(std::uint64_t chunk) const {
  return staging_.link ? staging_.transfer.place(chunk) : chunks_[chunk].memory.data() + front;
}

bool OpaqueBlock::make_room(std::uint64_t chunk, std::size_t bytes) {
  memory::Buffer& memory = chunks_[chunk].memory;
  if (staging_.link || memory) return true;
  const std::size_t room = front + bytes + back;
  memory = device_ == gpu::host ? runtime_.pool.take(room) : runtime_.devices.take(device_, room);
  return static_cast<bool>(memory);
}

void OpaqueBlock::add(std::uint64_t chunk, std::size_t bytes, bool is_elements) {
  chunks_[chunk].bytes = bytes;
  chunks_[chunk].is_elements = is_elements;
  bytes_ += bytes;
  if (staging_.link && !is_published_by_device_)
    staging_.link->publish(staging_.transfer, chunk, bytes);
  ready_.store(chunk + 1, std::memory_order_release);
}

std::size_t OpaqueBlock::longest() const {
  if (!is_whole()) return cut_.raw_bytes(0);
  return std::ranges::max_element(chunks_, {}, &Kept::bytes)->bytes;
}

void OpaqueBlock::make_chunks() {
  chunks_.resize(cut_.chunks());
  count_.store(chunks_.size(), std::memory_order_release);
}

gpu::Report* OpaqueBlock::report_of(std::uint64_t chunk) const {
  const bool has_one = staging_.link && staging_.link->devices_publish();
  return has_one ? staging_.link->report(staging_.transfer, chunk) : nullptr;
}

link::Arrived OpaqueBlock::arrived(std::uint64_t i) const {
  const Chunk chunk = this->chunk(i);
  return {chunk.data, chunk.bytes, staging_.transfer.is_on_host ? gpu::host : device_,
          staging_.link ? staging_.transfer.is_near : device_ != gpu::host};
}

const std::byte* OpaqueBlock::frame(std::size_t& bytes) {
  const wire::Header header{cut_.spec, cut_.type, cut_.count, bytes_};
  if (chunk(0).is_elements || wire::frame_bytes(bytes_) > cut_.bytes()) return nullptr;
  if (frame_bytes_ == 0) {
    std::byte* to = room_of(0) - wire::header_bytes;
    if (device_ != gpu::host) {
      frame_ = runtime_.devices.take_pinned(device_, wire::frame_bytes(bytes_));
      const QueueLease queue = runtime_.devices.queue(device_);
      if (!frame_ || !queue) return nullptr;
      to = frame_.data();
      const gpu::Event copied = queue->copy(to + wire::header_bytes, data_of(0), bytes_);
      if (!runtime_.devices.wait(*queue, copied).is_ok()) return nullptr;
    }
    frame_bytes_ = wire::close_frame(header, runtime_.nonce, to);
  }
  bytes = frame_bytes_;
  return device_ == gpu::host ? data_of(0) - wire::header_bytes : frame_.data();
}

}  // namespace mpress::engine
