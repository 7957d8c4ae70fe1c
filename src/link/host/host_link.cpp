// Which ranks the host link reaches, what they share, and the end.

#include "link/host/host_link.hpp"

#include <string>
#include <utility>

#include "gpu/loaded_gpu.hpp"
#include "link/liveness.hpp"
#include "trace/message.hpp"

namespace mpress::link {

HostMemory::Address HostLink::open(const HostMemory::Nonce& nonce, int rank, bool wanted) {
  nonce_ = nonce;
  rank_ = rank;
  if (wanted) own_ = HostMemory::create(nonce, rank, sizeof(HostSegment));
  return own_.address();
}

void HostLink::set_ranks(const std::vector<Neighbour>& ranks, std::size_t limit) {
  limit_ = limit;
  if (!own_ || ranks.size() > HostSegment::most_ranks) {
    own_ = {};
    return;
  }
  ranks_ = ranks;
  sources_ = std::vector<Source>(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i].rank < 0) continue;
    const auto rank = static_cast<std::size_t>(ranks[i].rank);
    if (rank >= index_.size()) index_.resize(rank + 1, -1);
    if (ranks[i].rank == rank_) {
      own_index_ = i;  // what a process sends itself is MPI's
    } else if (ranks[i].segment.file >= 0) {
      index_[rank] = static_cast<int>(i);
    }
  }
}

int HostLink::index_of(int rank) const {
  const auto index = static_cast<std::size_t>(rank);
  return rank >= 0 && index < index_.size() ? index_[index] : -1;
}

bool HostLink::may_reach(int rank) const {
  const int index = index_of(rank);
  return index >= 0 && own_ && !is_refused_.load(std::memory_order_relaxed) &&
         own().opened[index].load(std::memory_order_relaxed) != HostSegment::unreachable;
}

bool HostLink::reaches(int rank) const {
  return may_reach(rank) && own().opened[index_of(rank)].load(std::memory_order_relaxed) > 1;
}

bool HostLink::may_read(int rank) const {
  const int index = index_of(rank);
  return index >= 0 && own_ &&
         !sources_[static_cast<std::size_t>(index)].is_over.load(std::memory_order_relaxed);
}

void HostLink::open_shared(int rank, int device) {
  const int index = index_of(rank);
  if (index < 0 || !own_) return;
  Source& source = sources_[static_cast<std::size_t>(index)];
  const auto is_open = [&] {
    return source.is_known.load(std::memory_order_acquire) &&
           source.seen.load(std::memory_order_relaxed) ==
               of(source).staging_blocks.load(std::memory_order_relaxed);
  };
  if (source.is_over.load(std::memory_order_relaxed) || is_open()) return;
  std::lock_guard lock(receiving_);
  if (source.is_over.load(std::memory_order_relaxed) || is_open()) return;
  const char* const problem = open_new(ranks_[static_cast<std::size_t>(index)], source, device);
  if (source.segment) {
    const std::uint32_t seen = source.seen.load(std::memory_order_relaxed);
    of(source).opened[own_index_].store(problem ? HostSegment::unreachable : seen + 1,
                                        std::memory_order_release);
    source.is_known.store(true, std::memory_order_release);
  }
  if (!problem) return;
  source.is_over.store(true, std::memory_order_relaxed);
  if (is_said_.exchange(true)) return;
  trace::say("messages from rank " + std::to_string(rank) + " to GPUs of rank " +
             std::to_string(rank_) + " go through MPI: " + problem);
}

bool HostLink::is_read_by(int rank, int) {
  const int index = index_of(rank);
  if (index < 0 || !own_) return false;
  const Source& source = sources_[static_cast<std::size_t>(index)];
  return source.is_known.load(std::memory_order_acquire) &&
         !source.is_over.load(std::memory_order_relaxed);
}

/// Maps and pins the send staging that a rank has shared since; what keeps this process from it, or
/// null. What is under way in pieces that it has already still comes.
const char* HostLink::open_new(const Neighbour& neighbour, Source& source, int device) {
  if (!source.segment) {
    source.segment =
        HostMemory::open(neighbour.segment, nonce_, neighbour.rank, sizeof(HostSegment));
    if (!source.segment) return "its process cannot be looked at";
  }
  const std::uint32_t shared = of(source).staging_blocks.load(std::memory_order_acquire);
  for (std::uint32_t seen = source.seen.load(std::memory_order_relaxed); seen < shared; ++seen) {
    const SharedPiece& piece = of(source).staging[seen];
    HostMemory memory = HostMemory::open(piece.address, nonce_, neighbour.rank, piece.bytes);
    if (!memory) return "memory that they share cannot be mapped";
    if (!gpu::gpu()->map(device, memory.data(), piece.bytes)) {
      return "memory that they share cannot be pinned";
    }
    source.staging.push_back({std::move(memory), device, piece.bytes});
    source.seen.store(seen + 1, std::memory_order_release);
  }
  return nullptr;
}

bool HostLink::has_ended(int rank, std::uint64_t& looks) const {
  // Only who shares this process's numbers has opened what it shares.
  return link::has_ended(ranks_[static_cast<std::size_t>(index_of(rank))].segment.pid, looks);
}

bool HostLink::lives(int rank) const {
  return is_alive(process_here(ranks_[static_cast<std::size_t>(index_of(rank))].segment.pid));
}

void HostLink::close() {
  {
    std::lock_guard lock(sending_);
    if (own_mapped_by_ != gpu::host) {
      gpu::gpu()->unmap(std::exchange(own_mapped_by_, gpu::host), own_.data());
      is_mapped_.store(false, std::memory_order_relaxed);
    }
  }
  std::lock_guard lock(receiving_);
  for (Source& source : sources_) {
    for (Pinned& piece : source.staging) gpu::gpu()->unmap(piece.device, piece.memory.data());
    source.staging.clear();
    source.is_known.store(false, std::memory_order_relaxed);
    source.is_over.store(true, std::memory_order_relaxed);
  }
}

void HostLink::free_memory() {
  std::lock_guard lock(sending_);
  for (Staging& staging : staging_) {
    gpu::gpu()->unmap(staging.piece.device, staging.piece.memory.data());
  }
  staging_.clear();
  sent_.clear();
  index_.clear();
}

}  // namespace mpress::link
