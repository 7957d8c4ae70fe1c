#include "message/receive_place.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/staging.hpp"
#include "message/messaging.hpp"

namespace mpress::engine {

bool ReceivePlace::is_needed(bool may_be_frame) {
  if (buffer_.capacity() == 0) return false;
  if (!buffer_.may_be_located_late()) buffer_.locate();
  return (may_be_frame && buffer_.capacity() >= wire::min_frame_bytes) ||
         buffer_.is_unpacked_on_device();
}

bool ReceivePlace::choose(bool carries_frames, bool stays) {
  const Layout& layout = buffer_.layout();
  if (choose_raw()) return true;
  if (!carries_frames) return false;
  // MPI alone reaches such memory, and copies from staging, too.
  if (!layout.contiguous && !buffer_.is_readable()) {
    stage(Kind::staged);
    return true;
  }
  // A type of several kinds can receive floats where it begins with enough of them.
  if (!layout.contiguous && !layout.element && layout.leading_floats < wire::min_frame_bytes) {
    if (messaging_.chunks.is_open()) kind_ = Kind::scattered;
    return messaging_.chunks.is_open();
  }
  if (!layout.contiguous) {
    stage(Kind::staged);
    return true;
  }
  kind_ = buffer_.is_located() && buffer_.is_readable() ? Kind::in_place : Kind::remote;
  const std::size_t capacity = buffer_.capacity();
  if (buffer_.device() != gpu::host && !stays && messaging_.forecast.expects(capacity)) {
    staging_ = messaging_.pool.take(capacity);  // pages that MPI does not write cost nothing
    if (staging_) kind_ = Kind::staged;
  }
  if (layout.element) receive_packed();
  return true;
}

bool ReceivePlace::choose_raw() {
  if (!buffer_.is_unpacked_on_device()) return false;
  stage_packed();
  return true;
}

void ReceivePlace::choose_in_place() {
  if (kind_ == Kind::unwatched) kind_ = buffer_.is_readable() ? Kind::in_place : Kind::remote;
}

/// Takes memory for a message that is to be unpacked on its device: there, too, where MPI takes
/// such memory, unless a header is expected, which the host reads.
void ReceivePlace::stage_packed() {
  if (messaging_.hands_devices_to_mpi() && !messaging_.forecast.expects(buffer_.capacity())) {
    staging_ = messaging_.devices.take(buffer_.device(), buffer_.capacity());
  }
  if (!staging_) return stage(Kind::staged);
  kind_ = Kind::remote;
  receive_packed();
}

/// MPI receives the elements, or bytes, of a message without its gaps.
void ReceivePlace::receive_packed() {
  const Layout& layout = buffer_.layout();
  if (layout.element || !layout.contiguous) {
    packed_units_ = static_cast<std::int64_t>(buffer_.capacity() / layout.packed_unit());
  }
}

void ReceivePlace::stage(Kind kind) {
  kind_ = kind;
  // Pages of ordinary memory that MPI does not write cost nothing; pinned memory is dear, and large
  // messages mostly come in chunks, which have their own.
  const std::size_t capacity = buffer_.capacity();
  const bool pinned = buffer_.device() != gpu::host && !messaging_.chunks.may_come_cut(capacity);
  staging_ = pinned ? messaging_.devices.take_pinned(buffer_.device(), capacity)
                    : messaging_.pool.take(capacity);
  receive_packed();
}

/// An MPI that takes memory of the device gets such memory here, too: by way of the host long
/// messages take a hundred times as long.
void ReceivePlace::stage_aside() {
  locate();
  if (kind_ == Kind::remote && buffer_.device() != gpu::host) {
    staging_ = messaging_.devices.take(buffer_.device(), buffer_.capacity());
    if (staging_) return;
  }
  stage(Kind::aside);
}

void ReceivePlace::locate() {
  if (buffer_.is_located()) return;
  buffer_.locate();
  if (kind_ == Kind::remote && buffer_.is_readable()) kind_ = Kind::in_place;
}

const std::byte* ReceivePlace::beginning(Beginning& copy) const {
  if (kind_ == Kind::remote) {
    return copy_to_host(copy.data(), copy.size()).is_ok() ? copy.data() : nullptr;
  }
  if (kind_ != Kind::scattered) return data();
  std::byte* to = copy.data();
  buffer_.layout().first_runs().for_each([&](const gpu::Run& run) {
    std::memcpy(to, buffer_.data() + run.offset, run.bytes);
    to += run.bytes;
  });
  return copy.data();
}

Status ReceivePlace::copy_to_host(std::byte* to, std::size_t bytes) const {
  if (buffer_.is_readable()) {
    std::memcpy(to, data(), bytes);
    return Status::ok;
  }
  const int device = buffer_.device();
  if (device == gpu::host) return buffer_.layout().fetch(data(), to, bytes);
  const QueueLease queue = messaging_.devices.queue(device);
  if (!queue) return refused(messaging_, device);
  return messaging_.devices.wait(*queue, queue->copy(to, data(), bytes));
}

void ReceivePlace::save(std::size_t bytes) {
  memory::Buffer copy = messaging_.pool.take(buffer_.capacity());
  if (!copy || !copy_to_host(copy.data(), bytes).is_ok()) return;
  staging_ = std::move(copy);
  if (!buffer_.is_readable()) kind_ = Kind::staged;
}

/// Before data is laid out in a buffer that other receives may have, too: they look at what has
/// come there, and finish what they have begun there.
void ReceivePlace::let_others_leave() const {
  auto others = messaging_.in_place.overlapping(reinterpret_cast<std::uintptr_t>(buffer_.data()),
                                                buffer_.capacity());
  std::erase_if(others, [](const auto& other) { return !other->contest(); });
  if (others.empty() || Progress::is_advancing()) return;
  messaging_.progress.wait_until([&] {
    messaging_.progress.advance();
    return std::ranges::none_of(others, &InPlaceReceive::is_filling);
  });
}

Status ReceivePlace::lay_out(const std::byte* packed, std::size_t bytes) const {
  if (is_aside()) let_others_leave();
  return buffer_.lay_out(packed, bytes);
}

}  // namespace mpress::engine
