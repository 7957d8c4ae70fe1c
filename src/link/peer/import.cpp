// What others share, opened once and kept open; their slots, as this process reads them.

#include <algorithm>
#include <atomic>
#include <string>

#include "gpu/loaded_gpu.hpp"
#include "link/peer/peer_link.hpp"
#include "trace/message.hpp"

namespace mpress::link {

void PeerLink::open_shared(int rank, int device) {
  const int index = index_of(rank);
  if (index < 0 || !own_) return;
  Source& source = sources_[static_cast<std::size_t>(index)];
  if (source.is_over.load(std::memory_order_relaxed) || is_connected_to(source)) return;
  std::lock_guard lock(receiving_);
  if (source.is_over.load(std::memory_order_relaxed)) return;
  open_new(rank, source, device);
  if (!source.is_over.load(std::memory_order_relaxed)) give_receive_staging(source, device);
}

/// Has this process opened all that a rank shares, and given what that wants? Most messages find it
/// so, also where the rank shares nothing: to tell it again takes longer than a short message may,
/// as each of both then waits for the other's cache.
bool PeerLink::is_connected_to(const Source& source) const {
  if (!source.is_known.load(std::memory_order_acquire)) return false;
  const std::uint64_t wanted = source.segment->wanted[own_index_].load(std::memory_order_relaxed);
  return source.seen.load(std::memory_order_relaxed) ==
             source.segment->staging_blocks.load(std::memory_order_relaxed) &&
         source.answered.load(std::memory_order_relaxed) == wanted &&
         (wanted == 0 || source.has_room.load(std::memory_order_relaxed));
}

bool PeerLink::is_read_by(int rank, int device) {
  const int index = index_of(rank);
  if (index < 0 || !own_) return false;
  std::lock_guard lock(receiving_);
  const Source& source = sources_[static_cast<std::size_t>(index)];
  return source.home == device && !source.is_over.load(std::memory_order_relaxed);
}

/// Opens the send staging that a rank has shared since. One that cannot be opened ends that: the
/// rank will send by other ways. What is under way in the others still comes.
void PeerLink::open_new(int rank, Source& source, int device) {
  const auto& [number, address] = ranks_[static_cast<std::size_t>(index_of(rank))];
  const char* problem = nullptr;
  if (!source.is_tried) {
    source.is_tried = true;
    source.segment = MappedSegment::open(address, nonce_, number);
    if (!source.segment) problem = "its process cannot be looked at";
  }
  if (source.segment) {
    if (source.home == gpu::host) source.home = device;
    const std::uint32_t shared = source.segment->staging_blocks.load(std::memory_order_acquire);
    std::uint32_t seen = source.seen.load(std::memory_order_relaxed);
    const auto opens = [&] {
      return open_for(source.staging, seen, source.segment->staging[seen], source.home,
                      source.home);
    };
    while (seen < shared && opens()) ++seen;
    if (seen < shared) problem = "its memory of GPUs cannot be opened";
    source.segment->opened[own_index_].store(problem ? PeerSegment::unreachable : seen + 1,
                                             std::memory_order_release);
    source.seen.store(seen, std::memory_order_release);
    if (seen > 0) source.has_room.store(true, std::memory_order_release);
    source.is_known.store(true, std::memory_order_release);
  }
  if (!problem) return;
  source.is_over.store(true, std::memory_order_relaxed);
  if (!source.segment && other_way_) return;  // which fails for the same reason, and says so
  if (is_said_.exchange(true)) return;
  trace::say("messages from rank " + std::to_string(rank) + " to GPUs of rank " +
             std::to_string(own_->rank) + " go " + (other_way_ ? other_way_ : "through MPI") +
             ": " + problem);
}

/// A block as `device` reaches it, or else `home`, which `device` is then set to.
void* PeerLink::open_for(Opened& all, std::uint32_t number, const SharedBlock& block, int& device,
                         int home) {
  if (device == gpu::host) device = home;
  const auto row = static_cast<std::size_t>(device);
  if (row >= all.size()) all.resize(row + 1);
  std::vector<Mapping>& opened = all[row];
  if (opened.size() <= number) opened.resize(number + 1);
  Mapping& mapping = opened[number];
  if (!mapping.is_tried) mapping = {gpu::gpu()->open(device, block.handle), true};
  if (mapping.memory || device == home) return mapping.memory;
  device = home;
  return open_for(all, number, block, device, home);
}

bool PeerLink::knows(int rank, Route route, std::uint64_t chunks) {
  const std::uint64_t slot = route.slot;
  const int index = index_of(rank);
  if (index < 0 || !own_) return false;
  const Source& source = sources_[static_cast<std::size_t>(index)];
  return source.has_room.load(std::memory_order_acquire) && chunks <= PeerSegment::most_slots &&
         slot <= PeerSegment::most_slots - chunks;
}

const PeerLink::ReceiveStaging* PeerLink::receive_staging_of(const Source& source,
                                                             const Slot& slot) {
  const std::uint32_t number = slot.receive_staging;
  if (number == 0 || number > source.receive_staging.size()) return nullptr;
  return &source.receive_staging[number - 1];
}

int PeerLink::lands_on(int rank, Route route) {
  const std::uint64_t number = route.slot;
  const Source& source = source_of(rank);
  std::lock_guard lock(receiving_);
  const ReceiveStaging* const given = receive_staging_of(source, source.segment->slot[number]);
  return given ? given->device : gpu::host;
}

PeerLink::Arrival PeerLink::look(int rank, std::uint64_t number, int device) {
  Source& source = source_of(rank);
  const Slot& slot = source.segment->slot[number];
  auto state = static_cast<Slot::State>(slot.state.load(std::memory_order_acquire));
  if (state == Slot::by_mpi) return {state, nullptr, 0, device, slot.block};
  if (state == Slot::planned && is_published(*source.segment, slot)) {
    state = Slot::there;
  }
  if (state != Slot::there) return {state, nullptr, 0, device, 0};
  // What was encoded for several readers is told once, by the slot of the first.
  const std::uint64_t own = slot.report.bytes;
  const std::uint64_t bytes = own > 0 ? own : source.segment->slot[slot.told_by].report.bytes;
  const Arrival unknown{Slot::failed, nullptr, 0, device, 0};
  // A slot that is of another message than the header says may be in no memory that is known
  // here.
  const auto lies_in = [&](std::uint64_t room) {
    return slot.offset <= room && bytes <= room - slot.offset;
  };
  is_used_.store(true, std::memory_order_relaxed);
  std::lock_guard lock(receiving_);
  if (slot.receive_staging > 0) {
    const ReceiveStaging* const given = receive_staging_of(source, slot);
    if (!given || !lies_in(given->bytes)) return unknown;
    return {state, given->memory + slot.offset, bytes, given->device, 0, 0, true};
  }
  if (slot.staging >= source.seen.load(std::memory_order_acquire)) return unknown;
  const SharedBlock& block = source.segment->staging[slot.staging];
  if (!lies_in(block.bytes)) return unknown;
  const void* const memory = open_for(source.staging, slot.staging, block, device, source.home);
  return {state, static_cast<const std::byte*>(memory) + slot.offset, bytes, device, slot.block};
}

void PeerLink::acknowledge(int rank, std::uint64_t number) {
  const Source& source = source_of(rank);
  source.segment->slot[number].acknowledged.store(1, std::memory_order_release);
}

std::uint32_t* PeerLink::acknowledge_flag(int rank, std::uint64_t number, int device) {
  Source& source = source_of(rank);
  std::lock_guard lock(receiving_);
  if (source.mapped_by == gpu::host && !source.is_unmappable) {
    source.is_unmappable = !gpu::gpu()->map(device, source.segment.data(), sizeof(PeerSegment));
    if (!source.is_unmappable) source.mapped_by = device;
  }
  if (source.is_unmappable) return nullptr;
  return reinterpret_cast<std::uint32_t*>(&source.segment->slot[number].acknowledged);
}

bool PeerLink::discard(int rank, Route route, std::uint64_t chunks) {
  const std::uint64_t first = route.slot;
  Source& source = source_of(rank);
  std::uint32_t state = Slot::offered;
  const bool was_offered =
      source.segment->slot[first].state.compare_exchange_strong(state, Slot::getting);
  if (was_offered || state == Slot::by_mpi) chunks = 1;
  for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) acknowledge(rank, first + chunk);
  return was_offered || state != Slot::by_mpi;
}

}  // namespace mpress::link
