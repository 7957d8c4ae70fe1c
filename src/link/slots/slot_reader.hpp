// A transfer by slots as its reader has it.
#pragma once

#include <cstdint>

#include "link/link.hpp"
#include "link/slots/slot_link.hpp"

namespace mpress::link {

class SlotReader : public Inbound {
 public:
  SlotReader(SlotLink& link, const Expected& expected) : link_(link), expected_(expected) {}

  gpu::State poll(std::uint64_t chunk, Arrived& arrived) override;
  const char* problem() const override { return "did not come from its GPU"; }
  void acknowledge(std::uint64_t chunks) override;
  void finish(bool) override { acknowledge(expected_.chunks); }
  void give_up() override { is_broken_ = true; }
  trace::Way way() const override { return way_by(link_.kind()); }

 protected:
  std::uint64_t slot_of(std::uint64_t chunk) const { return expected_.route.slot + chunk; }
  Arrival look(std::uint64_t chunk) {
    return link_.look(expected_.rank, slot_of(chunk), expected_.device);
  }

  /// What poll() returns of a slot that was found so.
  gpu::State arrive(const Arrival& found, std::uint64_t chunk, Arrived& arrived);
  gpu::State fail() {
    is_broken_ = true;
    return gpu::State::failed;
  }
  bool is_broken() const { return is_broken_; }

  /// Its blocks come otherwise, and no slot of theirs is acknowledged any more.
  void leave_slots() { acknowledged_ = expected_.chunks; }

  SlotLink& link_;
  const Expected expected_;

 private:
  void lengthen(std::uint64_t chunk, std::uint32_t at_once, Arrived& arrived);

  std::uint64_t looks_ = 0;         ///< since something came
  std::uint64_t acknowledged_ = 0;  ///< chunks
  bool is_broken_ = false;
};

}  // namespace mpress::link
