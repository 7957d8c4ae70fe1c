#include "pipeline/opaque_block.hpp"

#include <algorithm>

#include "codec/codec.hpp"
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
  encoder_.reset();
  if (!home_.link || is_home_over_) return;
  if (!is_announced_) {
    home_.link->abandon(home_.transfer);
  } else if (is_whole()) {
    home_.link->release(home_.transfer);
  } else {
    home_.link->fail(home_.transfer);
  }
}

std::byte* OpaqueBlock::room_of(std::uint64_t chunk) const {
  return home_.link ? home_.transfer.place(chunk) : chunks_[chunk].memory.data() + front;
}

bool OpaqueBlock::make_room(std::uint64_t chunk, std::size_t bytes) {
  memory::Buffer& memory = chunks_[chunk].memory;
  const std::size_t room = front + bytes + back;
  memory = device_ == gpu::host ? runtime_.pool.take(room) : runtime_.devices.take(device_, room);
  return static_cast<bool>(memory);
}

void OpaqueBlock::add(std::uint64_t chunk, std::size_t bytes, bool is_elements) {
  chunks_[chunk].bytes = bytes;
  chunks_[chunk].is_elements = is_elements;
  bytes_ += bytes;
  if (home_.link && !is_published_by_device_) home_.link->publish(home_.transfer, chunk, bytes);
  ready_.store(chunk + 1, std::memory_order_release);
}

std::size_t OpaqueBlock::longest() const {
  if (!is_whole()) return cut_.raw_bytes(0);
  return std::ranges::max_element(chunks_, {}, &Kept::bytes)->bytes;
}

/// A device finds a relative bound itself, and payloads tell it.
void OpaqueBlock::make_chunks() {
  chunks_.resize(cut_.chunks());
  count_.store(chunks_.size(), std::memory_order_release);
}

bool OpaqueBlock::encode(const Chunking& cut, const Region& region, memory::Buffer packed,
                         const Home& home, LaunchBatch* batch) {
  packed_ = std::move(packed);
  Chunking resolved = cut;
  if (region.device == gpu::host && !resolve(runtime_, region, resolved.spec)) return false;
  return make(resolved, region.device, home, [&](const Chunking& all, Slots& slots) {
    return make_encoder(runtime_, all, region, slots, home.link ? batch : nullptr);
  });
}

bool OpaqueBlock::make(const Chunking& cut, int device, const Home& home,
                       const MakeEncoder& made_by) {
  cut_ = cut;
  home_ = home;
  device_ = device;
  make_chunks();
  for (std::uint64_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    if (!home_.link && !make_room(chunk, cut_.room())) return false;
  }
  encoder_ = made_by(cut_, *this);
  if (!encoder_) return false;
  is_published_by_device_ = encoder_->is_published_by_device();
  cut_.may_be_elements = !is_published_by_device_;  // what it publishes no host has looked at
  if (cut_.spec.bound == Bound::rel) {
    cut_.spec.bound = Bound::abs;
    cut_.spec.value = 0;
  }
  is_made_.store(false, std::memory_order_release);
  return true;
}

void OpaqueBlock::hold(const Chunking& cut, const Region& region) {
  cut_ = cut;
  device_ = region.device;
  held_ = region.data;
  make_chunks();
  for (std::uint64_t chunk = 0; chunk < chunks_.size(); ++chunk)
    add(chunk, cut_.raw_bytes(chunk), true);
}

std::byte* OpaqueBlock::place(std::uint64_t chunk, std::size_t) { return room_of(chunk); }

gpu::Report* OpaqueBlock::report(std::uint64_t chunk) {
  const bool has_one = home_.link && home_.link->devices_publish();
  return has_one ? home_.link->report(home_.transfer, chunk) : nullptr;
}

bool OpaqueBlock::advance() {
  if (!is_made_.load(std::memory_order_acquire) && !encode_next()) return false;
  // The home of one that is received goes with it: this rank may still decode what is there.
  if (!status().is_ok() && is_announced_ && !is_received()) fail_home();
  return true;
}

/// Readers learn of it now.
void OpaqueBlock::fail_home() {
  const std::lock_guard making(making_);
  if (!std::exchange(is_home_over_, true)) home_.link->fail(home_.transfer);
}

bool OpaqueBlock::encode_next() {
  std::unique_lock making(making_, std::try_to_lock);
  if (!making) return false;
  while (encoder_) {
    Made made;
    const gpu::State state = encoder_->next(made);
    if (state == gpu::State::pending) return false;
    if (state == gpu::State::failed) {
      status_.store(encoder_->status());
      end();
      break;
    }
    add(made.first, made.bytes, !made.is_encoded);
    const bool encodes_here = encoder_->encodes_here();
    if (is_whole()) end();
    if (encodes_here) break;  // other operations have their turn between chunks
  }
  return is_made_.load(std::memory_order_acquire);
}

void OpaqueBlock::end() {
  const std::uint64_t took_ns = encoder_->took_ns();
  encoder_.reset();
  packed_.reset();
  took_ns_.store(took_ns, std::memory_order_relaxed);
  if (status().is_ok() && told_) told_(bytes_, took_ns);
  is_made_.store(true, std::memory_order_release);
}

void OpaqueBlock::begin(const Chunking& cut, int device, bool is_homeless) {
  cut_ = cut;
  device_ = device;
  if (find_home_ && !is_homeless) home_ = find_home_(cut_, device_);
  if (home_.link) {
    is_published_by_device_ = true;
    is_made_.store(false, std::memory_order_relaxed);
  } else {
    cut_.may_be_elements = true;
  }
  make_chunks();
}

std::byte* OpaqueBlock::place_for(std::uint64_t chunk, std::size_t bytes) {
  if (home_.link) return room_of(chunk);
  const bool is_there = static_cast<bool>(chunks_[chunk].memory);
  return is_there || make_room(chunk, bytes) ? room_of(chunk) : nullptr;
}

std::uint32_t* OpaqueBlock::flag_for(std::uint64_t chunk, std::size_t bytes) {
  gpu::Report* const published = report(chunk);
  if (!published) return nullptr;
  published->bytes = bytes;
  return &published->sequence;
}

void OpaqueBlock::note(std::uint64_t chunk, std::size_t bytes, bool is_elements) {
  add(chunk, bytes, is_elements);
  if (is_whole()) is_made_.store(true, std::memory_order_release);
}

void OpaqueBlock::give_up(Status status) {
  status_.store(status);
  is_made_.store(true, std::memory_order_release);
}

const std::byte* OpaqueBlock::frame(std::size_t& bytes) {
  const wire::Header header{cut_.spec, cut_.type, cut_.count, bytes_};
  if (is_elements(0) || wire::frame_bytes(bytes_) > cut_.bytes()) return nullptr;
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
