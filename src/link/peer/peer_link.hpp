// The peer link: data from a GPU to another of the same host, by way of memory that both reach.
//
// Send staging is memory of the sender's device: readers copy or decode from there.
//
// What is encoded for one reader may land in staging memory of the reader's instead, which that has
// given this sender: an encoder's stores cross the link while it works, and the decoder finds them
// near. Where that memory is full the sender's own serves, so this makes no send wait, either.
//
// What needs no encoding may be exposed where the program has it (zero copy): offered to a reader
// who has opened that block of memory, and who gets it from there without any help of the sender's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "link/peer/gets.hpp"
#include "link/peer/offers.hpp"
#include "link/peer/opened.hpp"
#include "link/peer/segment.hpp"
#include "link/slots/slot_link.hpp"

namespace mpress::link {

class PeerLink final : public SlotLink {
 public:
  PeerLink() : SlotLink(sizeof(PeerSegment)) {}

  /// `limits`: of send staging, and of receive staging.
  void set_ranks(const std::vector<Neighbour>& ranks, const Limits& limits,
                 const char* other_way) override;

  /// reserve() for one reader, in its receive staging, as the sender's device reaches it. False
  /// where it has none free: then it is asked for some, for later messages.
  bool reserve_at_reader(const Reservation& wanted, Transfer& transfer);

  /// Slots without memory, for a message that is exposed, or else goes by MPI. False where there
  /// are none, or the rank has opened nothing yet.
  bool reserve_bare(int rank, std::size_t chunks, std::uint64_t operation, Transfer& transfer);

  Offers& offers() { return offers_; }
  Gets& gets() { return gets_; }

  void close() override;
  void free_memory() override;

 private:
  class Reader;
  /// A block of a reader's receive staging for this process.
  struct RemoteStaging {
    SharedBlock block;
    memory::Ranges free;
    Opened opened;
  };
  struct RemoteStagings {
    std::deque<RemoteStaging> all;
    std::uint64_t bytes = 0;
    bool is_refused = false;  ///< it cannot be opened
    FullLooks full_looks;
  };
  /// This process's receive staging for one sender.
  struct ReceiveStaging {
    std::vector<Piece> all;
    std::uint64_t bytes = 0;
    std::uint64_t too_much = UINT64_MAX;     ///< bytes more that a device did not have
    std::atomic<std::uint64_t> answered{0};  ///< what it last wanted
  };

  Kind kind() const override { return Kind::peer; }
  bool is_read_by(int rank, int device) override;
  bool reserve(const Reservation& wanted, Transfer& transfer) override;
  int lands_on(int rank, Route route) override;
  std::unique_ptr<Inbound> receive(const Expected& expected) override;

  const char* share(int device, std::uint64_t bytes, Piece& made, SharedBlock& block) override;
  void unshare(const Piece& piece) override;
  std::uint64_t with_spare(std::uint64_t bytes) const override { return bytes + bytes / 16; }
  const char* open_staging(Source& source, std::uint32_t number, int device) override;
  bool has_given(const Source& source) const override;
  void give_receive_staging(Source& source, int device) override;
  void close_opened(Source& source) override { opened_[source.index].close(); }
  bool locate(const Source& source, const Slot& slot, Arrival& arrival) override;

  PeerSegment& own_segment() const { return PeerSegment::of(own()); }
  std::uint64_t limit_on(int device) const;
  bool reserve_remote(const Reservation& wanted, RemoteStagings& staging, Transfer& planned);
  const Piece* receive_staging_of(const Source& source, const Slot& slot) const;

  bool grows_ = false;
  mutable std::atomic<std::size_t> largest_limit_{0};  ///< of the first device that was asked
  std::atomic<bool> cannot_share_{false};
  Offers offers_;
  Gets gets_;

  // By rank of the host:
  std::vector<RemoteStagings> remote_staging_;   ///< under sending_
  std::vector<Opened> opened_;                   ///< send staging; under receiving_
  std::vector<ReceiveStaging> receive_staging_;  ///< under receiving_
  std::uint64_t given_ = 0;                      ///< bytes of that
};

}  // namespace mpress::link
