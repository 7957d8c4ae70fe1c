// Zero copy, at the reader's: getting what a sender has exposed, and taking turns.

#include <algorithm>
#include <atomic>

#include "gpu/loaded_gpu.hpp"
#include "link/peer/peer_link.hpp"

namespace mpress::link {
namespace {

bool is_under_way(const Slot& slot) {
  return slot.state.load(std::memory_order_acquire) == Slot::getting &&
         slot.acknowledged.load(std::memory_order_acquire) == 0;
}

}  // namespace

bool PeerLink::Reading::goes_on() const {
  return slot && is_under_way(*slot) && slot->serial.load(std::memory_order_relaxed) == serial;
}

void PeerLink::open_block(int rank, std::uint32_t block, int device) {
  Source& source = source_of(rank);
  if (block == 0 || block > source.segment->blocks.load(std::memory_order_acquire)) return;
  const std::uint32_t number = block - 1;
  std::lock_guard lock(receiving_);
  // All that is offered can be taken, whatever device it is for.
  if (!open_for(source.blocks, number, source.segment->block[number], source.home, source.home)) {
    return;
  }
  open_for(source.blocks, number, source.segment->block[number], device, source.home);
  source.segment->opened_blocks[own_index_][number / PeerSegment::word_bits].fetch_or(
      std::uint64_t{1} << number % PeerSegment::word_bits);
}

PeerLink::Arrival PeerLink::get(int rank, std::uint64_t number, int device, std::size_t bytes) {
  Source& source = source_of(rank);
  Slot& slot = source.segment->slot[number];
  const std::uint32_t block = slot.block;
  const std::uint64_t within = slot.within;
  std::uint32_t offered = Slot::offered;
  if (!slot.state.compare_exchange_strong(offered, Slot::getting)) {
    return {Slot::planned, nullptr, 0, device, 0};
  }
  is_used_.store(true, std::memory_order_relaxed);
  const std::uint32_t serial = slot.serial.load(std::memory_order_relaxed);
  std::lock_guard lock(receiving_);
  // As for slots that are there: this one may be of another message than the header says.
  const bool is_known = block > 0 && block <= source.segment->blocks.load();
  const SharedBlock* const shared = is_known ? &source.segment->block[block - 1] : nullptr;
  const bool fits = shared && within <= shared->bytes && bytes <= shared->bytes - within;
  const void* const memory =
      fits ? open_for(source.blocks, block - 1, *shared, device, source.home) : nullptr;
  if (!memory) return {Slot::failed, nullptr, 0, device, 0};
  return {Slot::getting, static_cast<const std::byte*>(memory) + within, bytes, device, 0, serial};
}

/// Does no other rank read much from there?
bool PeerLink::is_free(const Source& source) const {
  const std::uint64_t last = source.segment->reader.load();
  const std::uint64_t number = (last & UINT32_MAX) - 1;
  return last == 0 || last >> 32 == own_reader() || number >= PeerSegment::most_slots ||
         !is_under_way(source.segment->slot[number]);
}

bool PeerLink::is_turn(int rank, std::uint64_t number, std::size_t bytes, std::uint64_t found_ns,
                       std::uint64_t now_ns) {
  if (bytes < parameters_.least_turn) return true;
  Source& source = source_of(rank);
  Slot& slot = source.segment->slot[number];
  slot.seen.store(1, std::memory_order_relaxed);
  const auto ongoing = [](const Source& one) {
    return std::count_if(one.readings.begin(), one.readings.end(),
                         [](const Reading& reading) { return reading.goes_on(); });
  };
  std::lock_guard lock(receiving_);
  source.asked_ns = now_ns;
  std::uint64_t last = source.segment->reader.load();
  const std::uint64_t next = own_reader() << 32 | (number + 1);
  if (now_ns - found_ns < parameters_.turn_ns(bytes)) {
    if (latest_ && latest_ != &source && ongoing(*latest_) > 0) return false;
    const auto busy = ongoing(source);
    if (busy == std::ssize(source.readings) || !is_free(source)) return false;
    // Whoever else is asked for has its turn first, if it had its last one before.
    for (const Source& other : sources_) {
      const bool asks = other.asked_ns > 0 && now_ns < other.asked_ns + parameters_.still_asked_ns;
      if (&other == &source || !asks) continue;
      if (busy > 0 || (other.turn < source.turn && is_free(other))) return false;
    }
    if (!source.segment->reader.compare_exchange_strong(last, next)) return false;
  } else {
    source.segment->reader.store(next);
  }
  source.asked_ns = 0;
  source.turn = ++turns_;
  Reading& oldest = source.readings[0].goes_on() ? source.readings[1] : source.readings[0];
  oldest = {&slot, slot.serial.load(std::memory_order_relaxed)};
  latest_ = &source;
  return true;
}

/// Once the device has told, the sender may have used the slot for another transfer.
void PeerLink::acknowledge_once(int rank, std::uint64_t number, std::uint32_t serial) {
  Source& source = source_of(rank);
  Slot& slot = source.segment->slot[number];
  if (slot.acknowledged.load(std::memory_order_acquire) != 0) return;
  if (slot.serial.load(std::memory_order_relaxed) == serial) acknowledge(rank, number);
}

}  // namespace mpress::link
