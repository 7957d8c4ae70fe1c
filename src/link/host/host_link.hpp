// The host link: data between GPUs of one host that do not reach each other, by way of host memory
// that both processes map and both GPUs have pinned. One copy over the bus out, one in; chunk by
// chunk, so that the two overlap.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "link/slots/slot_link.hpp"

namespace mpress::link {

class HostLink final : public SlotLink {
 public:
  HostLink() : SlotLink(sizeof(SlotSegment)) {}

  void set_ranks(const std::vector<Neighbour>& ranks, const Limits& limits,
                 const char* other_way) override;

  bool may_reach(int rank) const override {
    return SlotLink::may_reach(rank) && !is_refused_.load(std::memory_order_relaxed);
  }

 private:
  Kind kind() const override { return Kind::host; }
  bool is_read_by(int rank, int device) override;
  bool reserve(const Reservation& wanted, Transfer& transfer) override;
  std::unique_ptr<Inbound> receive(const Expected& expected) override;

  const char* share(int device, std::uint64_t bytes, Piece& made, SharedBlock& block) override;
  void unshare(const Piece& piece) override;
  void refuse(const char* problem) override;
  /// Maps and pins it. Pinning takes some milliseconds, once for each piece.
  const char* open_staging(Source& source, std::uint32_t number, int device) override;
  void close_opened(Source& source) override;
  bool locate(const Source& source, const Slot& slot, Arrival& arrival) override;

  std::vector<std::deque<Piece>> pinned_;  ///< by rank of the host: its send staging
  std::atomic<bool> is_refused_{false};    ///< memory cannot be shared, or not be pinned
};

}  // namespace mpress::link
