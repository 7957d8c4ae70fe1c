// What the sender says of its slots, and what its devices say.

#include <algorithm>
#include <atomic>
#include <utility>

#include "gpu/loaded_gpu.hpp"
#include "link/peer/peer_link.hpp"

namespace mpress::link {

/// An offer needs its first slot only, and the others are many cache lines that another processor
/// had last.
void PeerLink::lay_out(const Transfer& transfer) {
  const Slot& first = own_->slot[transfer.first];
  const bool in_runs = transfer.raw_bytes > 0;
  std::uint32_t run = 0;
  for (std::uint32_t number = 0; number < transfer.slots(); ++number) {
    const std::uint32_t chunk = number % transfer.chunks;
    Slot& slot = own_->slot[transfer.first + number];
    if (chunk == 0) run = 0;
    if (!in_runs || chunk == Transfer::run_behind(run)) run = chunk;
    if (number > 0) {
      slot.plan(first.staging, first.receive_staging, first.offset + chunk * transfer.chunk_room,
                transfer.first + run);
    }
    if (in_runs) {
      slot.report.bytes =
          std::min(transfer.chunk_room, transfer.raw_bytes - chunk * transfer.chunk_room);
    }
  }
}

Report* PeerLink::report(const Transfer& transfer, std::size_t chunk) {
  return &own_->slot[transfer.first + chunk].report;
}

/// Lets devices write to the own segment. Pinning it takes some hundred microseconds, once, where
/// memory for messages is being made, too.
void PeerLink::map_own(int device) {
  if (std::exchange(is_map_tried_, true)) return;
  if (!gpu::gpu()->map(device, own_.data(), sizeof(PeerSegment))) return;
  own_mapped_by_ = device;
  is_mapped_.store(true, std::memory_order_relaxed);
}

void PeerLink::publish(const Transfer& transfer, std::size_t chunk, std::size_t bytes) {
  Report& report = own_->slot[transfer.first + chunk].report;
  report.bytes = bytes;
  std::atomic_ref(report.sequence).store(1, std::memory_order_release);
}

bool PeerLink::fail(const Transfer& transfer) {
  // Its receiver says `taken` in all slots, and others may have them then, but not before the
  // last has failed.
  if (!transfer.memory) lay_out(transfer);
  bool is_taken = false;
  for (std::uint32_t chunk = 0; chunk < transfer.slots(); ++chunk) {
    Slot& slot = own_->slot[transfer.first + chunk];
    std::uint32_t state = slot.state.load(std::memory_order_relaxed);
    if (state == Slot::planned && is_published(*own_, slot)) continue;
    while ((state == Slot::planned || state == Slot::offered) &&
           !slot.state.compare_exchange_weak(state, Slot::failed, std::memory_order_release)) {
    }
    is_taken = is_taken || (chunk == 0 && state == Slot::getting);
  }
  if (!is_taken) release(transfer);
  return !is_taken;
}

void PeerLink::release(const Transfer& transfer) {
  is_held_[transfer.first].store(false, std::memory_order_release);
}

/// No reader will do so.
void PeerLink::acknowledge_all(const Transfer& transfer) {
  for (std::uint32_t number = 0; number < transfer.slots(); ++number) {
    own_->slot[transfer.first + number].acknowledged.store(1, std::memory_order_relaxed);
  }
}

/// Slots of a transfer that was never laid out still speak of earlier ones.
void PeerLink::abandon(const Transfer& transfer) {
  std::lock_guard lock(sending_);  // nobody reclaims it before all slots say so
  acknowledge_all(transfer);
  release(transfer);
}

void PeerLink::cancel(std::uint64_t operation) {
  std::lock_guard lock(sending_);
  for (const Sent& sent : sent_) {
    if (sent.operation == operation) acknowledge_all(sent.transfer);
  }
}

}  // namespace mpress::link
