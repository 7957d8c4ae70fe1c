// Receive staging: memory of a reader's that it has given one sender, so that what that encodes
// lands near the decoder. The sender keeps account of it by itself.

#include <algorithm>
#include <atomic>

#include "gpu/loaded_gpu.hpp"
#include "link/peer/peer_link.hpp"

namespace mpress::link {

bool PeerLink::reserve_at_reader(const Reservation& wanted, Transfer& transfer) {
  const int rank = wanted.readers.front();
  std::uint32_t opened = 0;
  const std::uint64_t each = room_of(rank, wanted, opened);
  if (each == 0) return false;
  Transfer planned{0, static_cast<std::uint32_t>(wanted.chunks), 1, each};
  const auto index = static_cast<std::size_t>(index_of(rank));
  std::lock_guard lock(sending_);
  RemoteStagings& staging = remote_staging_[index];
  if (staging.is_refused) return false;
  const std::uint32_t given = own_->receive_staging_blocks[index].load(std::memory_order_acquire);
  while (staging.all.size() < given) {
    const SharedBlock& block = own_->receive_staging[index][staging.all.size()];
    staging.all.push_back({block, memory::Ranges(block.bytes), {}});
    staging.bytes += block.bytes;
  }
  const auto reclaim_some = [this](std::size_t count) { reclaim(count); };
  const auto reserve_now = [&] { return reserve_remote(wanted, staging, planned); };
  if (!staging.all.empty() &&
      attempt_reserving(staging.full_looks, sent_, reclaim_some, reserve_now)) {
    transfer = planned;
    return true;
  }
  own_->wanted[index].store(staging.bytes + planned.bytes(), std::memory_order_relaxed);
  return false;
}

bool PeerLink::reserve_remote(const Reservation& wanted, RemoteStagings& staging,
                              Transfer& planned) {
  for (std::uint32_t i = 0; i < staging.all.size(); ++i) {
    RemoteStaging& block = staging.all[i];
    if (!block.free.fits(planned.bytes())) continue;
    const auto row = static_cast<std::size_t>(wanted.device);
    if (row >= block.mappings.size()) block.mappings.resize(row + 1);
    Mapping& mapping = block.mappings[row];
    if (!mapping.is_tried) mapping = {gpu::gpu()->open(wanted.device, block.block.handle), true};
    staging.is_refused = !mapping.memory;
    if (!mapping.memory) return false;
    map_own(wanted.device);
    return reserve_in(&block.free, 0, i + 1, mapping.memory, wanted, planned);
  }
  return false;
}

/// Gives a sender memory of `device`, if it has asked for some.
void PeerLink::give_receive_staging(Source& source, int device) {
  const std::uint64_t wanted = source.segment->wanted[own_index_].load(std::memory_order_relaxed);
  source.answered.store(wanted, std::memory_order_relaxed);
  const std::size_t count = source.receive_staging.size();
  if (wanted <= source.given_bytes || count == PeerSegment::most_receive_staging) return;
  const std::uint64_t more = wanted - source.given_bytes;
  const std::uint64_t left = limit_on(device) - std::min(limit_on(device), given_);
  if (more > left || more >= source.too_much) return;
  SharedBlock& block = source.segment->receive_staging[own_index_][count];
  std::byte* const memory = share_memory(device, more, source.given_bytes, left, block);
  if (!memory) source.too_much = more;
  if (!memory) return;
  source.receive_staging.push_back({device, memory, block.bytes});
  source.given_bytes += block.bytes;
  given_ += block.bytes;
  source.has_room.store(true, std::memory_order_release);
  source.segment->receive_staging_blocks[own_index_].store(static_cast<std::uint32_t>(count + 1),
                                                           std::memory_order_release);
}

}  // namespace mpress::link
