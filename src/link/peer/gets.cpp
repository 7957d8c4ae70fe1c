#include "link/peer/gets.hpp"

#include <algorithm>

#include "gpu/loaded_gpu.hpp"
#include "link/parameters.hpp"

namespace mpress::link {
namespace {

bool is_under_way(const Slot& slot) {
  return slot.state.load(std::memory_order_acquire) == Slot::getting &&
         slot.acknowledged.load(std::memory_order_acquire) == 0;
}

}  // namespace

bool Gets::Reading::goes_on() const {
  return slot && is_under_way(*slot) && slot->serial.load(std::memory_order_relaxed) == serial;
}

long Gets::Sender::ongoing() const {
  return std::count_if(readings.begin(), readings.end(),
                       [](const Reading& reading) { return reading.goes_on(); });
}

void Gets::open(Sources& sources, int own) {
  sources_ = &sources;
  own_reader_ = static_cast<std::uint64_t>(own) + 1;
  senders_.resize(sources.size());
}

void Gets::open_block(int rank, std::uint32_t block, int device) {
  const Source& source = sources_->of(rank);
  PeerSegment& segment = PeerSegment::of(source);
  if (block == 0 || block > segment.blocks.load(std::memory_order_acquire)) return;
  const std::uint32_t number = block - 1;
  std::lock_guard lock(mutex_);
  // All that is offered can be taken, whatever device it is for.
  Opened& blocks = sender_of(source).blocks;
  int first_device = source.first_device;
  if (!blocks.open(number, segment.block[number], first_device, source.first_device)) return;
  blocks.open(number, segment.block[number], device, source.first_device);
  segment.opened_blocks[sources_->own_index()][number / PeerSegment::word_bits].fetch_or(
      std::uint64_t{1} << number % PeerSegment::word_bits);
}

Arrival Gets::get(int rank, std::uint64_t number, int device, std::size_t bytes) {
  const Source& source = sources_->of(rank);
  PeerSegment& segment = PeerSegment::of(source);
  Slot& slot = segment.slot[number];
  const std::uint32_t block = slot.block;
  const std::uint64_t within = slot.within;
  std::uint32_t offered = Slot::offered;
  if (!slot.state.compare_exchange_strong(offered, Slot::getting)) {
    return {Slot::planned, nullptr, 0, device};
  }
  const std::uint32_t serial = slot.serial.load(std::memory_order_relaxed);
  std::lock_guard lock(mutex_);
  // As for slots that are there: this one may be of another message than the header says.
  const bool is_known = block > 0 && block <= segment.blocks.load();
  const SharedBlock* const shared = is_known ? &segment.block[block - 1] : nullptr;
  const bool fits = shared && within <= shared->bytes && bytes <= shared->bytes - within;
  const void* const memory =
      fits ? sender_of(source).blocks.open(block - 1, *shared, device, source.first_device)
           : nullptr;
  if (!memory) return {Slot::failed, nullptr, 0, device};
  return {.state = Slot::getting,
          .data = static_cast<const std::byte*>(memory) + within,
          .bytes = bytes,
          .device = device,
          .serial = serial};
}

/// Does no other rank read much from there?
bool Gets::is_free(const PeerSegment& segment) const {
  const std::uint64_t last = segment.reader.load();
  const std::uint64_t number = (last & UINT32_MAX) - 1;
  return last == 0 || last >> 32 == own_reader_ || number >= PeerSegment::most_slots ||
         !is_under_way(segment.slot[number]);
}

bool Gets::is_turn(int rank, std::uint64_t number, std::size_t bytes, std::uint64_t found_ns,
                   std::uint64_t now_ns) {
  constexpr Parameters parameters;
  if (bytes < parameters.least_turn) return true;
  const Source& source = sources_->of(rank);
  PeerSegment& segment = PeerSegment::of(source);
  Slot& slot = segment.slot[number];
  slot.seen.store(1, std::memory_order_relaxed);
  std::lock_guard lock(mutex_);
  Sender& sender = sender_of(source);
  sender.segment = &segment;
  sender.asked_ns = now_ns;
  std::uint64_t last = segment.reader.load();
  const std::uint64_t next = own_reader_ << 32 | (number + 1);
  if (now_ns - found_ns < parameters.turn_ns(bytes)) {
    if (latest_ && latest_ != &sender && latest_->ongoing() > 0) return false;
    const auto busy = sender.ongoing();
    if (busy == std::ssize(sender.readings) || !is_free(segment)) return false;
    // Another rank whose last turn was earlier goes first.
    for (const Sender& other : senders_) {
      const bool asks = other.asked_ns > 0 && now_ns < other.asked_ns + parameters.still_asked_ns;
      if (&other == &sender || !asks) continue;
      if (busy > 0 || (other.turn < sender.turn && is_free(*other.segment))) return false;
    }
    if (!segment.reader.compare_exchange_strong(last, next)) return false;
  } else {
    segment.reader.store(next);
  }
  sender.asked_ns = 0;
  sender.turn = ++turns_;
  Reading& oldest = sender.readings[0].goes_on() ? sender.readings[1] : sender.readings[0];
  oldest = {&slot, slot.serial.load(std::memory_order_relaxed)};
  latest_ = &sender;
  return true;
}

std::uint32_t* Gets::acknowledge_flag(int rank, std::uint64_t number, int device) {
  const Source& source = sources_->of(rank);
  std::lock_guard lock(mutex_);
  Sender& sender = sender_of(source);
  if (sender.mapped_by == gpu::host && !sender.is_unmappable) {
    sender.segment = &PeerSegment::of(source);
    sender.is_unmappable = !gpu::gpu()->map(device, sender.segment, sizeof(PeerSegment));
    if (!sender.is_unmappable) sender.mapped_by = device;
  }
  if (sender.is_unmappable) return nullptr;
  return reinterpret_cast<std::uint32_t*>(&source.slot(number).acknowledged);
}

/// Once the device has reported, the sender may have used the slot for another transfer.
void Gets::acknowledge_once(int rank, std::uint64_t number, std::uint32_t serial) {
  Slot& slot = sources_->of(rank).slot(number);
  if (slot.acknowledged.load(std::memory_order_acquire) != 0 ||
      slot.serial.load(std::memory_order_relaxed) != serial) {
    return;
  }
  slot.acknowledged.store(1, std::memory_order_release);
}

void Gets::close() {
  std::lock_guard lock(mutex_);
  for (Sender& sender : senders_) {
    sender.blocks.close();
    if (sender.mapped_by != gpu::host) gpu::gpu()->unmap(sender.mapped_by, sender.segment);
    sender.mapped_by = gpu::host;
  }
}

}  // namespace mpress::link
