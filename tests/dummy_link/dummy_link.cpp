#include "link/dummy/dummy_link.hpp"

#include <utility>

#include "gpu/loaded_gpu.hpp"

namespace mpress::link {

bool DummyLink::reserve(const Reservation& wanted, Transfer& transfer) {
  const std::uint32_t opened = opened_by_all(wanted.readers);
  if (wanted.device == gpu::host || opened == 0) return false;
  Transfer planned;
  planned.is_on_host = true;
  if (!plan(wanted, limit_, planned) || !reserve_staging(wanted, opened, limit_, planned)) {
    return false;
  }
  transfer = planned;
  return true;
}

const char* DummyLink::share(int device, std::uint64_t bytes, Piece& made, SharedBlock& block) {
  HostMemory memory = HostMemory::create(nonce_, rank_, bytes);
  if (!memory || !gpu::gpu()->map(device, memory.data(), bytes)) return HostMemory::none_left;
  block = {device, bytes, {}, memory.address()};
  made = {device, memory.data(), bytes, std::move(memory)};
  return nullptr;
}

void DummyLink::unshare(const Piece& piece) { gpu::gpu()->unmap(piece.device, piece.memory); }

const char* DummyLink::open_staging(Source& source, std::uint32_t number, int device) {
  const SharedBlock& block = source.slots().staging[number];
  HostMemory memory = HostMemory::open(block.address, nonce_, source.rank, block.bytes);
  if (!memory || !gpu::gpu()->map(device, memory.data(), block.bytes)) {
    return "memory that they share cannot be mapped";
  }
  opened_[source.index].push_back({device, memory.data(), block.bytes, std::move(memory)});
  return nullptr;
}

void DummyLink::close_opened(Source& source) {
  for (const Piece& piece : opened_[source.index]) unshare(piece);
  opened_[source.index].clear();
}

bool DummyLink::locate(const Source& source, const Slot& slot, Arrival& arrival) {
  const std::deque<Piece>& opened = opened_[source.index];
  if (slot.staging >= opened.size() || !slot.lies_in(opened[slot.staging].bytes, arrival.bytes)) {
    return false;
  }
  arrival.data = opened[slot.staging].memory + slot.offset;
  arrival.device = gpu::host;
  return true;
}

}  // namespace mpress::link
