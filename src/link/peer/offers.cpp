#include "link/peer/offers.hpp"

#include <algorithm>

#include "gpu/loaded_gpu.hpp"
#include "link/sizes.hpp"

namespace mpress::link {
namespace {

/// Of a rank that does not take what it is offered, at most so many messages go by until the next
/// offer.
constexpr std::uint32_t longest_skip = 63;

/// Blocks of the program's may be shared up to so many times the limit for staging memory: what
/// they cost is memory that the program frees and others still have open.
constexpr std::size_t export_limits = 4;

/// Blocks of the program's that are not shared and yet remembered.
constexpr std::size_t most_known_blocks = 4096;

}  // namespace

void Offers::open(PeerSegment& own, const Sources& ranks, Link& slots, std::size_t limit) {
  own_ = &own;
  ranks_ = &ranks;
  slots_ = &slots;
  limit_ = limit;
  getters_.resize(ranks.size());
}

Offers::Exposure Offers::expose(const Transfer& transfer, int rank, int device, const void* data,
                                std::size_t bytes) {
  Slot& slot = slot_of(transfer);
  const std::size_t reader = index_of(rank);
  std::lock_guard lock(mutex_);
  Getter& getter = getters_[reader];
  if (getter.skip > 0) {
    --getter.skip;
    return Exposure::not_now;
  }
  const Exposure exposure = find_exported(device, data, bytes, slot);
  if (exposure != Exposure::offered) return exposure;
  const std::uint32_t number = slot.block - 1;
  const std::uint64_t opened = own_->opened_blocks[reader][number / PeerSegment::word_bits].load();
  if ((opened >> number % PeerSegment::word_bits & 1) == 0) return Exposure::not_now;
  slot.seen.store(0, std::memory_order_relaxed);
  slot.state.store(Slot::offered, std::memory_order_release);
  return Exposure::offered;
}

bool Offers::is_seen(const Transfer& transfer) const {
  return slot_of(transfer).seen.load(std::memory_order_relaxed) != 0;
}

/// The block of the program's that the data lies in, for others to open. What they have open they
/// close at the end only, as that waits for the device, and so its memory does not come free before
/// either. Hence the limit, and no block is shared for its first message, as opening takes longer
/// than some copies.
Offers::Exposure Offers::find_exported(int device, const void* data, std::size_t bytes,
                                       Slot& slot) {
  gpu::Gpu* const gpu = gpu::gpu();
  gpu::Block block;
  if (!gpu->find_block(device, data, block)) return Exposure::impossible;
  const auto within = static_cast<std::uint64_t>(static_cast<const std::byte*>(data) - block.base);
  if (within > block.bytes || bytes > block.bytes - within) return Exposure::impossible;
  if (exported_.size() >= most_known_blocks) {
    std::erase_if(exported_, [](const auto& known) { return !known.second.is_shared; });
  }
  const auto [entry, is_new] = exported_.try_emplace(block.id);
  Exported& exported = entry->second;
  if (is_new) return Exposure::not_now;
  if (exported.is_refused) return Exposure::impossible;
  if (!exported.is_shared) {
    const std::uint32_t number = own_->blocks.load(std::memory_order_relaxed);
    const std::size_t kept = rounded(block.bytes, staging_grain);
    SharedBlock& shared = own_->block[std::min<std::size_t>(number, PeerSegment::most_blocks - 1)];
    exported.is_refused = number == PeerSegment::most_blocks ||
                          kept > export_limits * limit_ - exported_bytes_ ||
                          !gpu->share(device, block.base, shared.handle);
    if (exported.is_refused) return Exposure::impossible;
    shared.device = device;
    shared.bytes = block.bytes;
    exported.is_shared = true;
    exported.number = number;
    exported_bytes_ += kept;
    own_->blocks.store(number + 1, std::memory_order_release);
  }
  slot.block = exported.number + 1;
  slot.within = within;
  return Exposure::offered;
}

Offers::State Offers::look(const Transfer& transfer, int rank) {
  Slot& slot = slot_of(transfer);
  if (slot.state.load(std::memory_order_acquire) == Slot::offered) return State::open;
  if (slot.acknowledged.load(std::memory_order_acquire) == 0) return State::getting;
  std::lock_guard lock(mutex_);
  getters_[index_of(rank)] = {};
  slots_->release(transfer);
  return State::returned;
}

bool Offers::withdraw(const Transfer& transfer, int rank) {
  const bool has_memory = transfer.memory != nullptr;
  // A receiver may use all slots from the moment on that this is no offer.
  if (has_memory) slots_->lay_out(transfer);
  std::uint32_t offered = Slot::offered;
  const Slot::State instead = has_memory ? Slot::planned : Slot::by_mpi;
  if (!slot_of(transfer).state.compare_exchange_strong(offered, instead)) return false;
  if (!is_seen(transfer)) note_miss(rank);
  return true;
}

bool Offers::introduce(const Transfer& transfer) {
  Slot& slot = slot_of(transfer);
  if (slot.block == 0) return false;
  slot.state.store(Slot::by_mpi, std::memory_order_release);
  return true;
}

void Offers::note_miss(int rank) {
  std::lock_guard lock(mutex_);
  Getter& getter = getters_[index_of(rank)];
  getter.skip = std::min((1u << std::min(getter.misses, 31u)) - 1, longest_skip);
  ++getter.misses;
}

}  // namespace mpress::link
