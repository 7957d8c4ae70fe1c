// Send staging: memory of this process's that readers have opened, and who has room there.

#include <algorithm>
#include <atomic>
#include <utility>

#include "gpu/loaded_gpu.hpp"
#include "link/peer/peer_link.hpp"
#include "link/sizes.hpp"

namespace mpress::link {
/// Several long messages at once need their size each, and GPUs with more memory have longer ones.
std::uint64_t PeerLink::limit_on(int device) const {
  constexpr std::size_t share = 32;
  if (!grows_ || device == gpu::host) return limit_;
  std::size_t largest = largest_limit_.load(std::memory_order_relaxed);
  if (largest == 0) {
    largest = std::max(limit_, gpu::gpu()->memory_bytes(device) / share);
    largest_limit_.store(largest, std::memory_order_relaxed);
  }
  return largest;
}

/// Bytes from one chunk to the next; 0 where there can be no room for the transfer. `opened`: the
/// blocks of send staging that the rank has opened.
std::uint64_t PeerLink::room_of(int rank, const Reservation& wanted, std::uint32_t& opened) const {
  const int index = index_of(rank);
  if (index < 0 || !own_ || wanted.chunks == 0) return 0;
  if (wanted.chunks > PeerSegment::most_slots / wanted.readers.size()) return 0;
  const std::uint32_t word = own_->opened[index].load(std::memory_order_acquire);
  if (word == 0 || word == PeerSegment::unreachable) return 0;
  opened = word - 1;
  const std::uint64_t each = rounded(std::max<std::size_t>(wanted.bytes, 1), slot_alignment);
  return each <= limit_on(wanted.device) / wanted.chunks ? each : 0;
}

void PeerLink::advance() {
  std::lock_guard lock(sending_);
  reclaim(reclaimed_first);
}

bool PeerLink::reserve(const Reservation& wanted, Transfer& transfer) {
  if (wanted.may_be_at_reader && reserve_at_reader(wanted, transfer)) return true;
  std::uint32_t opened = UINT32_MAX;  // by all readers
  std::uint64_t each = 0;
  for (const int rank : wanted.readers) {
    std::uint32_t opened_here = 0;
    each = room_of(rank, wanted, opened_here);
    opened = std::min(opened, opened_here);
    if (each > 0) continue;
    // Too long for any block, but one has to be opened before messages of any length are offered.
    if (!is_connected(rank) || reaches(rank)) return false;
    std::lock_guard lock(sending_);
    if (staging_.empty()) grow(wanted.device, slot_alignment);
    return false;
  }
  if (each == 0) return false;
  Transfer planned{0, static_cast<std::uint32_t>(wanted.chunks),
                   static_cast<std::uint32_t>(wanted.readers.size()), each};
  const std::uint64_t total = planned.bytes();
  std::lock_guard lock(sending_);
  const auto reclaim_some = [this](std::size_t count) { reclaim(count); };
  const auto reserve_now = [&] { return reserve_staging(wanted, opened, planned); };
  if (attempt_reserving(full_looks_, sent_, reclaim_some, reserve_now)) {
    transfer = planned;
    return true;
  }
  if (wanted.account && !wanted.may_exceed && !wanted.account->has_room(total)) return false;
  const bool will_fit = std::any_of(staging_.begin(), staging_.end(), [&](const Staging& staging) {
    return staging.device == wanted.device && staging.free.fits(total);  // once it is opened
  });
  if (!will_fit) grow(wanted.device, total);
  return false;
}

/// In one of the first `opened` blocks, if there is room.
bool PeerLink::reserve_staging(const Reservation& wanted, std::uint32_t opened, Transfer& planned) {
  for (std::uint32_t i = 0; i < std::min<std::size_t>(opened, staging_.size()); ++i) {
    Staging& staging = staging_[i];
    if (staging.device != wanted.device || !staging.free.fits(planned.bytes())) continue;
    planned.is_near = true;
    return reserve_in(&staging.free, i, 0, staging.memory, wanted, planned);
  }
  return false;
}

/// In `room`, which has enough, or without any; false where there are no slots, or the operation
/// has used up its share.
bool PeerLink::reserve_in(memory::Ranges* room, std::uint32_t staging,
                          std::uint32_t receive_staging, void* memory, const Reservation& wanted,
                          Transfer& planned) {
  Account* const account = room ? wanted.account : nullptr;
  if (account && !wanted.may_exceed && !account->has_room(planned.bytes())) return false;
  const auto first = free_slots_.take(planned.slots());
  if (!first) return false;
  const std::uint64_t begin = room ? *room->take(planned.bytes()) : 0;
  planned.first = static_cast<std::uint32_t>(*first);
  planned.memory = room ? static_cast<std::byte*>(memory) + begin : nullptr;
  Slot& slot = own_->slot[*first];
  slot.serial.store(++serial_, std::memory_order_relaxed);
  slot.plan(staging, receive_staging, begin, planned.first);
  is_held_[*first].store(true, std::memory_order_relaxed);
  sent_.push_back({planned, wanted.operation, begin, room, account});
  if (account) account->take(planned.bytes());
  return true;
}

bool PeerLink::reserve_bare(int rank, std::size_t chunks, std::uint64_t operation,
                            Transfer& transfer) {
  if (!reaches(rank) || chunks > PeerSegment::most_slots) return false;
  Transfer planned{0, static_cast<std::uint32_t>(chunks), 1};
  const Reservation wanted{{&rank, 1}, gpu::host, chunks, 0, operation};
  std::lock_guard lock(sending_);
  const auto reclaim_some = [this](std::size_t count) { reclaim(count); };
  const auto reserve_now = [&] { return reserve_in(nullptr, 0, 0, nullptr, wanted, planned); };
  if (!attempt_reserving(full_looks_, sent_, reclaim_some, reserve_now)) return false;
  transfer = planned;
  return true;
}

/// Shares another block with room for `bytes`, if the limit and the device allow it.
void PeerLink::grow(int device, std::uint64_t bytes) {
  if (until_growing_ > 0) {
    --until_growing_;
    return;
  }
  const auto count = static_cast<std::uint32_t>(staging_.size());
  const std::uint64_t limit = limit_on(device);
  const std::uint64_t left = limit - std::min<std::uint64_t>(limit, held_);
  if (bytes > left || count == PeerSegment::most_staging) return;
  SharedBlock& block = own_->staging[count];
  std::byte* const memory = share_memory(device, bytes, held_, left, block);
  until_growing_ = memory ? 0 : reservations_between_asking;
  if (!memory) return;
  staging_.push_back({device, memory, memory::Ranges(block.bytes)});
  held_ += block.bytes;
  map_own(device);
  own_->staging_blocks.store(count + 1, std::memory_order_release);
}

/// New memory of `device` for a message of `bytes` bytes, where `held` bytes serve the same purpose
/// already and `left` bytes may be taken; null where the device has none or cannot share it. A
/// message of this size may need more when it is encoded. As much as there is already, so that a
/// few blocks have room for many messages, and the latest for long ones.
std::byte* PeerLink::share_memory(int device, std::uint64_t bytes, std::uint64_t held,
                                  std::uint64_t left, SharedBlock& block) {
  if (cannot_share_.load(std::memory_order_relaxed)) return nullptr;
  const std::uint64_t enough = std::min(rounded(bytes + bytes / 16, staging_grain), left);
  const std::uint64_t usual = std::max(enough, std::min(std::max(least_staging, held), left));
  gpu::Gpu* const gpu = gpu::gpu();
  block.device = device;
  block.bytes = usual;
  void* memory = gpu->allocate(gpu::Place::device, device, usual);
  if (!memory && usual > enough) {
    block.bytes = enough;
    memory = gpu->allocate(gpu::Place::device, device, enough);
  }
  if (memory && !gpu->share(device, memory, block.handle)) {
    gpu->release(gpu::Place::device, device, memory);
    memory = nullptr;
    cannot_share_.store(true, std::memory_order_relaxed);
  }
  return static_cast<std::byte*>(memory);
}

/// Both sides have done with all of it.
bool PeerLink::is_over(const Sent& sent) const {
  if (is_held_[sent.transfer.first].load(std::memory_order_acquire)) return false;
  const Slot& first = own_->slot[sent.transfer.first];
  const std::uint32_t state = first.state.load(std::memory_order_acquire);
  if (state == Slot::getting || state == Slot::by_mpi) {
    return first.acknowledged.load(std::memory_order_acquire) != 0;
  }
  for (std::uint32_t chunk = sent.transfer.slots(); chunk-- > 0;) {  // the last is mostly the last
    const Slot& slot = own_->slot[sent.transfer.first + chunk];
    if (slot.acknowledged.load(std::memory_order_acquire) == 0) return false;
  }
  return true;
}

/// Frees the memory of what was acknowledged, of the `count` that were looked at the longest ago.
void PeerLink::reclaim(std::size_t count) {
  reclaim_oldest(
      sent_, count, [this](const Sent& sent) { return is_over(sent); },
      [this](const Sent& sent) {
        if (sent.room) sent.room->give(sent.begin, sent.transfer.bytes());
        free_slots_.give(sent.transfer.first, sent.transfer.slots());
        if (sent.account) sent.account->give(sent.transfer.bytes());
      });
}

}  // namespace mpress::link
