// Zero copy, at the sender's: memory of the program's is offered to a reader that has opened it.

#include <algorithm>
#include <atomic>

#include "gpu/loaded_gpu.hpp"
#include "link/peer/peer_link.hpp"
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

Link::Exposure PeerLink::expose(const Transfer& transfer, int rank, int device, const void* data,
                                std::size_t bytes) {
  Slot& slot = own_->slot[transfer.first];
  std::lock_guard lock(sending_);
  Getter& getter = getter_of(rank);
  if (getter.skip > 0) {
    --getter.skip;
    return Exposure::not_now;
  }
  const Exposure exposure = find_exported(device, data, bytes, slot);
  if (exposure != Exposure::offered) return exposure;
  const std::uint32_t number = slot.block - 1;
  const std::uint64_t opened =
      own_->opened_blocks[index_of(rank)][number / PeerSegment::word_bits].load();
  if ((opened >> number % PeerSegment::word_bits & 1) == 0) return Exposure::not_now;
  slot.seen.store(0, std::memory_order_relaxed);
  slot.state.store(Slot::offered, std::memory_order_release);
  return Exposure::offered;
}

bool PeerLink::is_seen(const Transfer& transfer) const {
  return own_->slot[transfer.first].seen.load(std::memory_order_relaxed) != 0;
}

/// The block of the program's that the data lies in, for others to open. What they have open they
/// close at the end only, as that waits for the device, and so its memory does not come free before
/// either. Hence the limit, and no block is shared for its first message, as opening takes longer
/// than some copies.
Link::Exposure PeerLink::find_exported(int device, const void* data, std::size_t bytes,
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

PeerLink::Offer PeerLink::look_at_offer(const Transfer& transfer, int rank) {
  Slot& slot = own_->slot[transfer.first];
  if (slot.state.load(std::memory_order_acquire) == Slot::offered) return Offer::open;
  if (slot.acknowledged.load(std::memory_order_acquire) == 0) return Offer::getting;
  std::lock_guard lock(sending_);
  getter_of(rank) = {};
  release(transfer);
  return Offer::returned;
}

bool PeerLink::withdraw(const Transfer& transfer, int rank) {
  const bool has_memory = transfer.memory != nullptr;
  // A receiver may use all slots from the moment on that this is no offer.
  if (has_memory) lay_out(transfer);
  std::uint32_t offered = Slot::offered;
  const Slot::State instead = has_memory ? Slot::planned : Slot::by_mpi;
  if (!own_->slot[transfer.first].state.compare_exchange_strong(offered, instead)) return false;
  if (!is_seen(transfer)) note_miss(rank);
  return true;
}

bool PeerLink::introduce(const Transfer& transfer) {
  Slot& slot = own_->slot[transfer.first];
  if (slot.block == 0) return false;
  slot.state.store(Slot::by_mpi, std::memory_order_release);
  return true;
}

void PeerLink::note_miss(int rank) {
  std::lock_guard lock(sending_);
  Getter& getter = getter_of(rank);
  getter.skip = std::min((1u << std::min(getter.misses, 31u)) - 1, longest_skip);
  ++getter.misses;
}

}  // namespace mpress::link
