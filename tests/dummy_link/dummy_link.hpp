// A link like the host link, without windows, and without a word where memory cannot be pinned. It
// shows what a new link touches outside its folder: three_files.patch.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "link/slots/slot_link.hpp"
#include "link/slots/slot_reader.hpp"

namespace mpress::link {

class DummyLink final : public SlotLink {
 public:
  DummyLink() : SlotLink(sizeof(SlotSegment)) {}

  void set_ranks(const std::vector<Neighbour>& ranks, const Limits& limits,
                 const char* other_way) override {
    SlotLink::set_ranks(ranks, limits, other_way);
    opened_.resize(ranks.size());
  }

 private:
  Kind kind() const override { return Kind::dummy; }
  bool is_read_by(int rank, int) override { return find(rank) != nullptr; }
  bool reserve(const Reservation& wanted, Transfer& transfer) override;
  std::unique_ptr<Inbound> receive(const Expected& expected) override {
    return std::make_unique<SlotReader>(*this, expected);
  }

  const char* share(int device, std::uint64_t bytes, Piece& made, SharedBlock& block) override;
  void unshare(const Piece& piece) override;
  const char* open_staging(Source& source, std::uint32_t number, int device) override;
  void close_opened(Source& source) override;
  bool locate(const Source& source, const Slot& slot, Arrival& arrival) override;

  std::vector<std::deque<Piece>> opened_;  ///< by rank of the host: its send staging
};

}  // namespace mpress::link
