#include "link/slots/slot_reader.hpp"

#include <algorithm>

namespace mpress::link {

Arrival SlotLink::look(int rank, std::uint64_t number, int device) {
  const Source& source = sources_.of(rank);
  const Slot& slot = source.slot(number);
  auto state = static_cast<Slot::State>(slot.state.load(std::memory_order_acquire));
  if (state == Slot::by_mpi) return {state, nullptr, 0, device, slot.block};
  if (state == Slot::planned && is_published(source.slots(), slot)) state = Slot::there;
  if (state != Slot::there) return {state, nullptr, 0, device};
  // The slot of the first reader reports what was encoded for several, once.
  const std::uint64_t own = slot.report.bytes;
  const std::uint64_t bytes = own > 0 ? own : source.slot(slot.reported_by).report.bytes;
  is_used_.store(true, std::memory_order_relaxed);
  Arrival arrival{state, nullptr, bytes, device, slot.block, slot.at_once};
  std::lock_guard lock(receiving_);
  // A slot that is of another message than the header says may be in no memory that is known here.
  if (locate(source, slot, arrival)) return arrival;
  return {Slot::failed, nullptr, 0, device};
}

gpu::State SlotReader::poll(std::uint64_t chunk, Arrived& arrived) {
  return is_broken_ ? gpu::State::failed : arrive(look(chunk), chunk, arrived);
}

gpu::State SlotReader::arrive(const Arrival& found, std::uint64_t chunk, Arrived& arrived) {
  if (found.state == Slot::planned) {
    return link_.has_ended(expected_.rank, looks_) ? fail() : gpu::State::pending;
  }
  if (found.state != Slot::there) return fail();
  looks_ = 0;
  arrived = {found.data, found.bytes, found.device, found.is_near};
  const bool is_reached = found.device == expected_.device || found.device == gpu::host;
  if (expected_.as_they_are && is_reached) lengthen(chunk, found.at_once, arrived);
  return gpu::State::done;
}

/// The chunks behind it that are there, too, and lie there: one long copy uses the link, or the
/// bus, better than several.
void SlotReader::lengthen(std::uint64_t chunk, std::uint32_t at_once, Arrived& arrived) {
  if (arrived.bytes != expected_.bytes_of(chunk)) return;
  const std::uint64_t end = std::min(expected_.chunks, chunk + at_once);
  for (std::uint64_t next = chunk + 1; next < end; ++next) {
    const Arrival found = look(next);
    if (found.state != Slot::there || found.device != arrived.device ||
        found.data != arrived.data + arrived.bytes || found.bytes != expected_.bytes_of(next)) {
      return;
    }
    arrived.bytes += found.bytes;
    ++arrived.chunks;
  }
}

void SlotReader::acknowledge(std::uint64_t chunks) {
  for (; acknowledged_ < chunks; ++acknowledged_) {
    link_.acknowledge(expected_.rank, slot_of(acknowledged_));
  }
}

}  // namespace mpress::link
