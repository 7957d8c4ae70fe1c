// Which ranks a link by slots reaches, what they share, and the end.

#include "link/slots/slot_link.hpp"

#include <utility>

#include "gpu/loaded_gpu.hpp"
#include "link/liveness.hpp"
#include "trace/message.hpp"

namespace mpress::link {

Address SlotLink::open(const Nonce& nonce, int rank, bool is_wanted) {
  nonce_ = nonce;
  rank_ = rank;
  if (is_wanted) own_ = HostMemory::create(nonce, rank, segment_bytes_);
  if (own_) own().version = SlotSegment::layout;
  return Address(own_.address());
}

void SlotLink::set_ranks(const std::vector<Neighbour>& ranks, const Limits& limits,
                         const char* other_way) {
  limit_ = limits.bytes;
  other_way_ = other_way;
  if (!own_ || ranks.size() > SlotSegment::most_ranks) {
    own_ = {};
    return;
  }
  sources_.open(ranks, rank_);
}

/// Lets devices write to the own segment. Pinning it takes some hundred microseconds, once, where
/// memory for messages is being made, too.
void SlotLink::map_own(int device) {
  if (std::exchange(is_map_tried_, true)) return;
  if (!gpu::gpu()->map(device, own_.data(), segment_bytes_)) return;
  own_mapped_by_ = device;
  is_mapped_.store(true, std::memory_order_relaxed);
}

bool SlotLink::connect(int rank, int device) {
  Source* const source = find(rank);
  if (!source) return false;
  if (has_all_of(*source) && has_given(*source)) return true;
  std::lock_guard lock(receiving_);
  if (!has_all_of(*source)) open_new(*source, device);
  if (source->is_over.load(std::memory_order_relaxed)) return false;
  give_receive_staging(*source, device);
  return true;
}

void SlotLink::open_new(Source& source, int device) {
  if (source.is_over.load(std::memory_order_relaxed)) return;
  const char* problem = nullptr;
  if (!source.segment) {
    source.segment = HostMemory::open(source.address, nonce_, source.rank, segment_bytes_);
    if (source.segment && source.slots().version != SlotSegment::layout) source.segment = {};
  }
  if (source.segment) {
    if (source.first_device == gpu::host) source.first_device = device;
    const std::uint32_t shared = source.slots().staging_blocks.load(std::memory_order_acquire);
    std::uint32_t seen = source.seen.load(std::memory_order_relaxed);
    while (seen < shared && !(problem = open_staging(source, seen, device))) {
      source.seen.store(++seen, std::memory_order_release);
    }
    source.slots().opened[sources_.own_index()].store(problem ? SlotSegment::unreachable : seen + 1,
                                                      std::memory_order_release);
    if (seen > 0) source.has_room.store(true, std::memory_order_release);
    source.is_known.store(true, std::memory_order_release);
  } else {
    problem = "its process cannot be looked at";
  }
  if (!problem) return;
  source.is_over.store(true, std::memory_order_relaxed);
  if (!source.segment && other_way_) return;  // which fails for the same reason, and says so
  say_not("rank " + std::to_string(source.rank) + " to GPUs of rank " + std::to_string(rank_),
          problem);
}

void SlotLink::say_not(const std::string& messages, const char* problem) {
  if (is_said_.exchange(true)) return;
  trace::say("messages from " + messages + " go " + (other_way_ ? other_way_ : "through MPI") +
             ": " + problem);
}

bool SlotLink::knows(int rank, Route route, std::uint64_t chunks) {
  const std::uint64_t slot = route.slot;
  if (!own_ || sources_.index_of(rank) < 0) return false;
  return sources_.of(rank).has_room.load(std::memory_order_acquire) &&
         chunks <= SlotSegment::most_slots && slot <= SlotSegment::most_slots - chunks;
}

bool SlotLink::discard(int rank, Route route, std::uint64_t chunks) {
  std::uint32_t state = Slot::offered;
  const bool was_offered =
      sources_.of(rank).slot(route.slot).state.compare_exchange_strong(state, Slot::getting);
  if (was_offered || state == Slot::by_mpi) chunks = 1;
  for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) acknowledge(rank, route.slot + chunk);
  return was_offered || state != Slot::by_mpi;
}

bool SlotLink::has_ended(int rank, std::uint64_t& looks) const {
  return link::has_ended(sources_.of(rank).process, looks);
}

bool SlotLink::lives(int rank) const { return is_alive(sources_.of(rank).process); }

void SlotLink::close() {
  std::scoped_lock lock(sending_, receiving_);
  if (own_mapped_by_ != gpu::host) {
    gpu::gpu()->unmap(std::exchange(own_mapped_by_, gpu::host), own_.data());
    is_mapped_.store(false, std::memory_order_relaxed);
  }
  for (Source& source : sources_.all()) {
    close_opened(source);
    source.is_known.store(false, std::memory_order_relaxed);
    source.has_room.store(false, std::memory_order_relaxed);
    source.seen.store(0, std::memory_order_relaxed);
    source.is_over.store(true, std::memory_order_relaxed);
  }
}

void SlotLink::free_memory() {
  std::scoped_lock lock(sending_, receiving_);
  for (const Staging& staging : staging_) unshare(staging.piece);
  staging_.clear();
  sent_.clear();
  sources_.forget();
}

}  // namespace mpress::link
