// Zero copy, at the sender's: memory of the program's is offered to a reader that has opened it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "link/link.hpp"
#include "link/parameters.hpp"
#include "link/peer/segment.hpp"

namespace mpress::link {

/// An offer stands in the first slot of a transfer, in place of its blocks. One that nobody answers
/// while the sender waits is withdrawn, and the data copied to staging. Thread-safe.
class Offers {
 public:
  enum class Exposure : std::uint8_t {
    offered,
    not_now,     ///< as the reader has not opened that memory yet, or took nothing lately
    impossible,  ///< the link or that memory does not allow it
  };
  enum class State : std::uint8_t {
    open,
    getting,   ///< the memory is in use
    returned,  ///< it is not any more, and the transfer is over, and released
  };

  /// `slots`: the link whose slots they stand in. Memory of up to a multiple of `limit` bytes is
  /// shared. What is referred to outlives this.
  void open(PeerSegment& own, const Sources& ranks, Link& slots, std::size_t limit);

  /// Offers a reader the program's own memory, `bytes` bytes from `data` on, in place of the slots,
  /// to get the blocks from without a copy here. Where the rank has not opened that memory yet, it
  /// will be asked to.
  Exposure expose(const Transfer& transfer, int rank, int device, const void* data,
                  std::size_t bytes);

  /// The state of the offer of a transfer to `rank`.
  State look(const Transfer& transfer, int rank);

  /// Has its reader seen it, and waits for its turn?
  bool is_seen(const Transfer& transfer) const;

  /// How long an offer of `bytes` bytes stands while its sender waits for nothing else.
  std::uint64_t stands_ns(const Transfer& transfer, std::size_t bytes) const {
    return Parameters().offer_ns(bytes, is_seen(transfer));
  }

  /// Takes an offer back, to send the chunks after all, by MPI where the transfer has no memory.
  /// False where its reader gets it.
  bool withdraw(const Transfer& transfer, int rank);

  /// Tells the reader of a transfer without memory, before it hears of that, that its chunks come
  /// by MPI, and which block the next ones may be offered from. False where there is none such.
  bool introduce(const Transfer& transfer);

 private:
  /// A block of the program's that messages were sent from.
  struct Exported {
    std::uint32_t number = 0;  ///< in the segment
    bool is_shared = false;
    bool is_refused = false;  ///< it cannot be
  };
  /// How a rank answers offers.
  struct Getter {
    std::uint32_t misses = 0;  ///< offers in a row that it did not take
    std::uint32_t skip = 0;    ///< messages until it gets the next
  };

  std::size_t index_of(int rank) const { return static_cast<std::size_t>(ranks_->index_of(rank)); }
  Slot& slot_of(const Transfer& transfer) const { return own_->slot[transfer.first]; }
  Exposure find_exported(int device, const void* data, std::size_t bytes, Slot& slot);
  void note_miss(int rank);

  PeerSegment* own_ = nullptr;
  const Sources* ranks_ = nullptr;
  Link* slots_ = nullptr;
  std::size_t limit_ = 0;

  std::mutex mutex_;
  std::unordered_map<std::uint64_t, Exported> exported_;  ///< by the block's id
  std::size_t exported_bytes_ = 0;
  std::vector<Getter> getters_;  ///< by rank of the host
};

}  // namespace mpress::link
