#include "link/host/host_link.hpp"

#include <string>
#include <utility>

#include "gpu/loaded_gpu.hpp"
#include "link/slots/slot_reader.hpp"

namespace mpress::link {
namespace {

/// Why not, or null.
const char* pin(int device, HostMemory& memory, std::uint64_t bytes) {
  return gpu::gpu()->map(device, memory.data(), bytes) ? nullptr
                                                       : "memory that they share cannot be pinned";
}

}  // namespace

void HostLink::set_ranks(const std::vector<Neighbour>& ranks, const Limits& limits,
                         const char* other_way) {
  SlotLink::set_ranks(ranks, limits, other_way);
  pinned_.resize(ranks.size());
}

bool HostLink::reserve(const Reservation& wanted, Transfer& transfer) {
  if (wanted.device == gpu::host || is_refused_.load(std::memory_order_relaxed)) return false;
  const std::uint32_t opened = opened_by_all(wanted.readers);
  if (opened == 0) return false;
  Transfer planned;
  planned.is_on_host = true;
  if (wanted.window < wanted.chunks) planned.window = static_cast<std::uint32_t>(wanted.window);
  if (!plan(wanted, limit_, planned) || !reserve_staging(wanted, opened, limit_, planned)) {
    return false;
  }
  transfer = planned;
  return true;
}

const char* HostLink::share(int device, std::uint64_t bytes, Piece& made, SharedBlock& block) {
  HostMemory memory = HostMemory::create(nonce_, rank_, bytes);
  if (!memory) return HostMemory::none_left;
  if (const char* const problem = pin(device, memory, bytes)) return problem;
  block = {device, bytes, {}, memory.address()};
  made = {device, memory.data(), bytes, std::move(memory)};
  return nullptr;
}

void HostLink::unshare(const Piece& piece) { gpu::gpu()->unmap(piece.device, piece.memory); }

void HostLink::refuse(const char* problem) {
  is_refused_.store(true, std::memory_order_relaxed);
  say_not("GPUs of rank " + std::to_string(rank_), problem);
}

bool HostLink::is_read_by(int rank, int) {
  const Source* const source = find(rank);
  return source && source->is_known.load(std::memory_order_acquire);
}

const char* HostLink::open_staging(Source& source, std::uint32_t number, int device) {
  const SharedBlock& block = source.slots().staging[number];
  HostMemory memory = HostMemory::open(block.address, nonce_, source.rank, block.bytes);
  if (!memory) return "memory that they share cannot be mapped";
  if (const char* const problem = pin(device, memory, block.bytes)) return problem;
  pinned_[source.index].push_back({device, memory.data(), block.bytes, std::move(memory)});
  return nullptr;
}

void HostLink::close_opened(Source& source) {
  for (const Piece& piece : pinned_[source.index]) unshare(piece);
  pinned_[source.index].clear();
}

bool HostLink::locate(const Source& source, const Slot& slot, Arrival& arrival) {
  const std::deque<Piece>& pinned = pinned_[source.index];
  if (slot.staging >= pinned.size() || !slot.lies_in(pinned[slot.staging].bytes, arrival.bytes)) {
    return false;
  }
  arrival.data = pinned[slot.staging].memory + slot.offset;
  arrival.device = gpu::host;
  return true;
}

std::unique_ptr<Inbound> HostLink::receive(const Expected& expected) {
  return std::make_unique<SlotReader>(*this, expected);
}

}  // namespace mpress::link
