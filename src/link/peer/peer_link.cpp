#include "link/peer/peer_link.hpp"

#include <utility>

#include "gpu/loaded_gpu.hpp"
#include "link/liveness.hpp"

namespace mpress::link {

SegmentAddress PeerLink::open(const std::array<std::uint8_t, 16>& nonce, int rank, bool wanted) {
  nonce_ = nonce;
  if (wanted) own_ = MappedSegment::create(nonce, rank);
  return own_.address();
}

void PeerLink::set_ranks(const std::vector<HostRank>& ranks, std::size_t limit, bool grows) {
  limit_ = limit;
  grows_ = grows;
  if (!own_ || ranks.size() > PeerSegment::most_ranks) {
    own_ = {};
    return;
  }
  ranks_ = ranks;
  sources_ = std::vector<Source>(ranks.size());
  getters_.resize(ranks.size());
  remote_staging_.resize(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].rank < 0) continue;
    const auto rank = static_cast<std::size_t>(ranks[i].rank);
    if (rank >= index_.size()) index_.resize(rank + 1, -1);
    if (ranks[i].rank == own_->rank) {
      own_index_ = i;  // a process cannot open its own memory
    } else if (ranks[i].segment.file >= 0) {
      index_[rank] = static_cast<int>(i);
    }
  }
}

int PeerLink::index_of(int rank) const {
  const auto index = static_cast<std::size_t>(rank);
  return rank >= 0 && index < index_.size() ? index_[index] : -1;
}

/// Has it looked at what this one shares, if anything?
bool PeerLink::is_connected(int rank) const {
  return may_reach(rank) && own_->opened[index_of(rank)].load(std::memory_order_acquire) > 0;
}

bool PeerLink::may_reach(int rank) const {
  const int index = index_of(rank);
  return index >= 0 && own_ &&
         own_->opened[index].load(std::memory_order_relaxed) != PeerSegment::unreachable;
}

bool PeerLink::reaches(int rank) const {
  return may_reach(rank) && own_->opened[index_of(rank)].load(std::memory_order_relaxed) > 1;
}

bool PeerLink::may_read(int rank) const {
  const int index = index_of(rank);
  return index >= 0 && own_ &&
         !sources_[static_cast<std::size_t>(index)].is_over.load(std::memory_order_relaxed);
}

void PeerLink::close() {
  const auto close_mapping = [](std::size_t device, const Mapping& mapping) {
    if (mapping.memory) gpu::gpu()->close(static_cast<int>(device), mapping.memory);
  };
  {
    std::lock_guard lock(sending_);
    for (RemoteStagings& staging : remote_staging_) {
      for (const RemoteStaging& block : staging.all) {
        for (std::size_t device = 0; device < block.mappings.size(); ++device) {
          close_mapping(device, block.mappings[device]);
        }
      }
      staging.all.clear();
      staging.is_refused = true;
    }
    if (own_mapped_by_ != gpu::host) {
      gpu::gpu()->unmap(std::exchange(own_mapped_by_, gpu::host), own_.data());
      is_mapped_.store(false, std::memory_order_relaxed);
    }
  }
  std::lock_guard lock(receiving_);
  for (Source& source : sources_) {
    for (Opened* all : {&source.staging, &source.blocks}) {
      for (std::size_t device = 0; device < all->size(); ++device) {
        for (const Mapping& mapping : (*all)[device]) close_mapping(device, mapping);
      }
      all->clear();
    }
    if (source.mapped_by != gpu::host) {
      gpu::gpu()->unmap(source.mapped_by, source.segment.data());
      source.mapped_by = gpu::host;
    }
    source.is_known.store(false, std::memory_order_relaxed);
    source.has_room.store(false, std::memory_order_relaxed);
    source.seen.store(0, std::memory_order_relaxed);
    source.is_over.store(true, std::memory_order_relaxed);
  }
}

void PeerLink::free_memory() {
  std::scoped_lock lock(sending_, receiving_);
  for (const Staging& staging : staging_) {
    gpu::gpu()->release(gpu::Place::device, staging.device, staging.memory);
  }
  for (Source& source : sources_) {
    for (const ReceiveStaging& given : source.receive_staging) {
      gpu::gpu()->release(gpu::Place::device, given.device, given.memory);
    }
    source.receive_staging.clear();
  }
  staging_.clear();
  sent_.clear();
  index_.clear();
}

/// Only who shares this process's numbers has opened what it shares.
std::int32_t PeerLink::process_of(int rank) const {
  return ranks_[static_cast<std::size_t>(index_of(rank))].segment.pid;
}

bool PeerLink::has_ended(int rank, std::uint64_t& looks) const {
  return link::has_ended(process_of(rank), looks);
}

bool PeerLink::lives(int rank) const { return is_alive(process_here(process_of(rank))); }

}  // namespace mpress::link
