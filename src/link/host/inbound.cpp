// A transfer by the host link as its reader has it.

#include <algorithm>
#include <atomic>
#include <utility>

#include "link/host/host_link.hpp"

namespace mpress::link {

class HostLink::Reader final : public Inbound {
 public:
  Reader(HostLink& link, const Expected& expected) : link_(link), expected_(expected) {}

  gpu::State poll(std::uint64_t chunk, Arrived& arrived) override {
    if (is_broken_) return gpu::State::failed;
    const gpu::State state = link_.look(expected_.rank, slot_of(chunk), arrived);
    if (state == gpu::State::pending && !link_.has_ended(expected_.rank, looks_)) return state;
    if (state != gpu::State::done) {
      is_broken_ = true;
      return gpu::State::failed;
    }
    looks_ = 0;
    if (expected_.as_they_are) lengthen(chunk, arrived);
    return state;
  }

  const char* problem() const override { return "did not come from its GPU"; }

  void acknowledge(std::uint64_t chunks) override {
    HostSegment& segment = of(link_.source_of(expected_.rank));
    for (; acknowledged_ < chunks; ++acknowledged_) {
      segment.slot[slot_of(acknowledged_)].acknowledged.store(1, std::memory_order_release);
    }
  }

  void finish(bool) override { acknowledge(expected_.chunks); }
  void give_up() override { is_broken_ = true; }
  trace::Way way() const override { return trace::Way::host; }

 private:
  std::uint64_t slot_of(std::uint64_t chunk) const { return expected_.route.slot + chunk; }

  /// The chunks behind it that are there, too: one long copy uses the bus better than several.
  void lengthen(std::uint64_t chunk, Arrived& arrived) {
    if (arrived.bytes != expected_.bytes_of(chunk)) return;
    const std::uint32_t most = of(link_.source_of(expected_.rank)).slot[slot_of(chunk)].at_once;
    const std::uint64_t end = std::min<std::uint64_t>(expected_.chunks, chunk + most);
    for (std::uint64_t next = chunk + 1; next < end; ++next) {
      Arrived found;
      if (link_.look(expected_.rank, slot_of(next), found) != gpu::State::done ||
          found.data != arrived.data + arrived.bytes || found.bytes != expected_.bytes_of(next)) {
        return;
      }
      arrived.bytes += found.bytes;
      ++arrived.chunks;
    }
  }

  HostLink& link_;
  const Expected expected_;
  std::uint64_t looks_ = 0;         ///< since something came
  std::uint64_t acknowledged_ = 0;  ///< chunks
  bool is_broken_ = false;
};

/// Is the block of a slot of `rank`'s there? Failed, too, where it would lie in memory that this
/// process does not know: then the slot is of another message than the header says.
gpu::State HostLink::look(int rank, std::uint64_t number, Arrived& arrived) {
  Source& source = source_of(rank);
  HostSegment& segment = of(source);
  const HostSlot& slot = segment.slot[number];
  const std::uint32_t teller = slot.told_by;
  if (teller >= HostSegment::most_slots) return gpu::State::failed;
  Report& report = segment.slot[teller].report;
  if (std::atomic_ref(report.sequence).load(std::memory_order_acquire) == 0) {
    const bool failed = slot.state.load(std::memory_order_acquire) == HostSlot::failed;
    return failed ? gpu::State::failed : gpu::State::pending;
  }
  is_used_.store(true, std::memory_order_relaxed);
  std::lock_guard lock(receiving_);
  if (slot.staging >= source.staging.size()) return gpu::State::failed;
  const Pinned& piece = source.staging[slot.staging];
  if (slot.offset > piece.bytes || report.bytes > piece.bytes - slot.offset) {
    return gpu::State::failed;
  }
  arrived = {piece.memory.data() + slot.offset, report.bytes};
  return gpu::State::done;
}

bool HostLink::knows(int rank, Route route, std::uint64_t chunks) {
  const std::uint64_t slot = route.slot;
  const int index = index_of(rank);
  if (index < 0 || !own_) return false;
  const Source& source = sources_[static_cast<std::size_t>(index)];
  return source.is_known.load(std::memory_order_acquire) &&
         source.seen.load(std::memory_order_relaxed) > 0 && chunks <= HostSegment::most_slots &&
         slot <= HostSegment::most_slots - chunks;
}

std::unique_ptr<Inbound> HostLink::receive(const Expected& expected) {
  return std::make_unique<Reader>(*this, expected);
}

bool HostLink::discard(int rank, Route route, std::uint64_t chunks) {
  HostSegment& segment = of(source_of(rank));
  for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
    segment.slot[route.slot + chunk].acknowledged.store(1, std::memory_order_release);
  }
  return true;
}

}  // namespace mpress::link
