#include "link/peer/peer_link.hpp"

#include <algorithm>
#include <utility>

#include "gpu/loaded_gpu.hpp"

namespace mpress::link {

void PeerLink::set_ranks(const std::vector<Neighbour>& ranks, const Limits& limits,
                         const char* other_way) {
  SlotLink::set_ranks(ranks, limits, other_way);
  grows_ = limits.may_grow;
  if (!is_open()) return;
  remote_staging_.resize(ranks.size());
  opened_.resize(ranks.size());
  receive_staging_ = std::vector<ReceiveStaging>(ranks.size());
  offers_.open(own_segment(), sources_, *this, limits.bytes);
  gets_.open(sources_, rank_);
}

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

bool PeerLink::reserve(const Reservation& wanted, Transfer& transfer) {
  if (wanted.may_be_at_reader && reserve_at_reader(wanted, transfer)) return true;
  const std::uint32_t opened = opened_by_all(wanted.readers);
  if (opened == 0) return false;
  const std::uint64_t limit = limit_on(wanted.device);
  Transfer planned;
  planned.is_near = true;
  if (plan(wanted, limit, planned)) {
    if (!reserve_staging(wanted, opened, limit, planned)) return false;
    transfer = planned;
    return true;
  }
  // Too long for any block, but one has to be opened before messages of any length are offered.
  if (opened > 1) return false;
  std::lock_guard lock(sending_);
  if (!has_staging()) grow(wanted.device, slot_alignment, limit);
  return false;
}

bool PeerLink::reserve_bare(int rank, std::size_t chunks, std::uint64_t operation,
                            Transfer& transfer) {
  if (!reaches(rank) || chunks > SlotSegment::most_slots) return false;
  Transfer planned{0, static_cast<std::uint32_t>(chunks), 1};
  const Reservation wanted{{&rank, 1}, gpu::host, chunks, 0, operation};
  std::lock_guard lock(sending_);
  if (!attempt_bare(wanted, planned)) return false;
  transfer = planned;
  return true;
}

const char* PeerLink::share(int device, std::uint64_t bytes, Piece& made, SharedBlock& block) {
  if (cannot_share_.load(std::memory_order_relaxed)) return HostMemory::none_left;
  gpu::Gpu* const gpu = gpu::gpu();
  void* const memory = gpu->allocate(gpu::Place::device, device, bytes);
  if (!memory) return HostMemory::none_left;
  if (!gpu->share(device, memory, block.handle)) {
    gpu->release(gpu::Place::device, device, memory);
    cannot_share_.store(true, std::memory_order_relaxed);
    return HostMemory::none_left;
  }
  block.device = device;
  block.bytes = bytes;
  made = {device, static_cast<std::byte*>(memory), bytes};
  return nullptr;
}

void PeerLink::unshare(const Piece& piece) {
  gpu::gpu()->release(gpu::Place::device, piece.device, piece.memory);
}

bool PeerLink::is_read_by(int rank, int device) {
  const Source* const source = find(rank);
  if (!source) return false;
  std::lock_guard lock(receiving_);
  return source->first_device == device;
}

/// All of a rank's is opened for the device that first got a block from it.
const char* PeerLink::open_staging(Source& source, std::uint32_t number, int) {
  int first_device = source.first_device;
  return opened_[source.index].open(number, source.slots().staging[number], first_device,
                                    first_device)
             ? nullptr
             : "its memory of GPUs cannot be opened";
}

bool PeerLink::locate(const Source& source, const Slot& slot, Arrival& arrival) {
  if (slot.receive_staging > 0) {
    const Piece* const given = receive_staging_of(source, slot);
    if (!given || !slot.lies_in(given->bytes, arrival.bytes)) return false;
    arrival.data = given->memory + slot.offset;
    arrival.device = given->device;
    arrival.is_near = true;
    return true;
  }
  if (slot.staging >= source.seen.load(std::memory_order_acquire)) return false;
  const SharedBlock& block = source.slots().staging[slot.staging];
  if (!slot.lies_in(block.bytes, arrival.bytes)) return false;
  const void* const memory =
      opened_[source.index].open(slot.staging, block, arrival.device, source.first_device);
  arrival.data = static_cast<const std::byte*>(memory) + slot.offset;
  return true;
}

int PeerLink::lands_on(int rank, Route route) {
  const Source& source = sources_.of(rank);
  std::lock_guard lock(receiving_);
  const Piece* const given = receive_staging_of(source, source.slot(route.slot));
  return given ? given->device : gpu::host;
}

void PeerLink::close() {
  gets_.close();
  {
    std::lock_guard lock(sending_);
    for (RemoteStagings& staging : remote_staging_) {
      for (RemoteStaging& block : staging.all) block.opened.close();
      staging.all.clear();
      staging.is_refused = true;
    }
  }
  SlotLink::close();
}

void PeerLink::free_memory() {
  SlotLink::free_memory();
  for (ReceiveStaging& given : receive_staging_) {
    for (const Piece& piece : given.all) unshare(piece);
    given.all.clear();
  }
}

}  // namespace mpress::link
