// The base of the links between GPUs of one host: blocks go by way of memory that both ends reach.
//
// The sender puts blocks into send staging, memory of its own that it has shared, and is done with
// them: no send waits for its readers. Those read from there, and acknowledge; then the memory is
// free for others. It is made when messages need it, up to a limit, and each reader opens a block
// of it once, when it next gets a message from there: until then, and where memory is short,
// messages take another way.
//
// What the memory is, how it is shared, and how a reader opens it, each link says by itself.
//
// Processes find each other's segments through /proc, so they need one space of process numbers and
// one user. Nothing here knows MPI or elements. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "gpu/gpu.hpp"
#include "link/host_memory.hpp"
#include "link/link.hpp"
#include "link/sizes.hpp"
#include "link/slots/slot.hpp"
#include "link/slots/sources.hpp"
#include "memory/ranges.hpp"

namespace mpress::link {

class SlotLink : public MemoryLink {
 public:
  SlotLink(const SlotLink&) = delete;
  SlotLink& operator=(const SlotLink&) = delete;

  /// Makes this process's segment, for others to find at its address.
  Address open(const Nonce& nonce, int rank, bool is_wanted) override;

  /// `limits`: of send staging.
  void set_ranks(const std::vector<Neighbour>& ranks, const Limits& limits,
                 const char* other_way) override;

  bool is_open() const override { return static_cast<bool>(own_); }

  bool may_reach(int rank) const override {
    return opened_by(rank, std::memory_order_relaxed) != SlotSegment::unreachable;
  }
  bool reaches(int rank) const override {
    const std::uint32_t opened = opened_by(rank, std::memory_order_relaxed);
    return opened > 1 && opened != SlotSegment::unreachable;
  }

  bool is_used() const override { return is_used_.load(std::memory_order_relaxed); }

  /// Opens what that rank shares for `device`, and gives it the receive staging that it asks for.
  bool connect(int rank, int device) override;

  /// Has its process ended? For who looks again and again, `looks` times until now: asked now and
  /// then.
  bool has_ended(int rank, std::uint64_t& looks) const;

  // Slots, as a reader sees them.

  /// Looks at a slot of `rank`'s, for queues of `device` if those reach it.
  Arrival look(int rank, std::uint64_t slot, int device);

  /// The block was read, and its memory is not needed any more.
  void acknowledge(int rank, std::uint64_t slot) {
    sources_.of(rank).slot(slot).acknowledged.store(1, std::memory_order_release);
  }

  void close() override;
  void free_memory() override;

 protected:
  /// Memory that this process shares, or has opened.
  struct Piece {
    int device = gpu::host;  ///< whose it is, or that it was pinned with
    std::byte* memory = nullptr;
    std::uint64_t bytes = 0;
    HostMemory on_host{};  ///< where it is the host's
  };
  /// Where a transfer's blocks will lie; no ranges: nowhere.
  struct Room {
    memory::Ranges* free = nullptr;
    std::byte* memory = nullptr;
    std::uint32_t staging = 0;          ///< as Slot has it
    std::uint16_t receive_staging = 0;  ///< as Slot has it
  };

  /// `segment_bytes`: of a segment, which begins as a SlotSegment.
  explicit SlotLink(std::size_t segment_bytes) : segment_bytes_(segment_bytes) {}
  ~SlotLink() = default;

  // What links differ in.

  /// Makes memory that others may open, as `block` says; returns why it cannot, or null.
  virtual const char* share(int device, std::uint64_t bytes, Piece& made, SharedBlock& block) = 0;
  virtual void unshare(const Piece& piece) = 0;

  /// No send staging at all can be shared, for this reason.
  virtual void refuse(const char* /*problem*/) {}

  /// What a message of `bytes` bytes may need.
  virtual std::uint64_t with_spare(std::uint64_t bytes) const { return bytes; }

  /// Has a source the receive staging that it asks for, as far as there is any?
  virtual bool has_given(const Source& /*source*/) const { return true; }
  /// Gives it some on `device`. receiving_ is held.
  virtual void give_receive_staging(Source& /*source*/, int /*device*/) {}

  /// Opens a source's block of send staging for queues of `device`; returns why it cannot, or null.
  /// receiving_ is held.
  virtual const char* open_staging(Source& source, std::uint32_t number, int device) = 0;
  virtual void close_opened(Source& source) = 0;

  /// Where a block lies of which the size and the reader's device are known; false where this
  /// process knows no such memory. receiving_ is held.
  virtual bool locate(const Source& source, const Slot& slot, Arrival& arrival) = 0;

  // Of Link.

  bool lives(int rank) const override;

  /// Frees the memory of what was acknowledged, as reserve() does.
  void advance() override;
  void lay_out(const Transfer& transfer) override;
  std::byte* place(const Transfer& transfer, std::size_t chunk, std::size_t) override {
    return transfer.place(chunk);
  }
  bool is_free(const Transfer& transfer, std::size_t chunk) const override;
  bool devices_publish() const override { return is_mapped_.load(std::memory_order_relaxed); }
  Report* report(const Transfer& transfer, std::size_t chunk) override {
    return &own_slot(transfer.first + chunk).report;
  }
  void publish(const Transfer& transfer, std::size_t chunk, std::size_t bytes) override;
  void release(const Transfer& transfer) override {
    is_held_[transfer.first].store(false, std::memory_order_release);
  }
  bool fail(const Transfer& transfer) override;
  void abandon(const Transfer& transfer) override;
  void cancel(std::uint64_t operation) override;
  bool knows(int rank, Route route, std::uint64_t chunks) override;
  bool discard(int rank, Route route, std::uint64_t chunks) override;

  // For senders.

  SlotSegment& own() const { return *reinterpret_cast<SlotSegment*>(own_.data()); }
  Slot& own_slot(std::uint64_t number) const { return own().slot[number]; }

  /// Blocks of send staging that every reader has opened, plus one; 0: one has had no message yet,
  /// or cannot be reached.
  std::uint32_t opened_by_all(std::span<const int> readers) const;

  /// How slots lie for what is wanted; false where `limit` bytes are no room for them.
  bool plan(const Reservation& wanted, std::uint64_t limit, Transfer& planned) const;

  /// In send staging that `opened` says all readers have opened. Where there is no room, more is
  /// made for later, up to `limit` bytes.
  bool reserve_staging(const Reservation& wanted, std::uint32_t opened, std::uint64_t limit,
                       Transfer& planned);

  // sending_ is held:

  /// attempt() once a few transfers were looked at, and where that fails, all.
  template <typename Attempt>
  bool attempt_reserving(FullLooks& looks, const Attempt& attempt) {
    return link::attempt_reserving(
        looks, sent_, [this](std::size_t count) { reclaim(count); }, attempt);
  }
  bool attempt_bare(const Reservation& wanted, Transfer& planned) {
    return attempt_reserving(full_looks_, [&] { return reserve_in({}, wanted, planned); });
  }
  bool reserve_in(const Room& room, const Reservation& wanted, Transfer& planned);
  bool has_staging() const { return !staging_.empty(); }
  void grow(int device, std::uint64_t bytes, std::uint64_t limit);
  void map_own(int device);

  /// Shares memory for a message of `bytes` bytes, where `held` bytes serve the same purpose and
  /// `left` more may: as much as there is already, so that a few blocks have room for many
  /// messages, and the latest for long ones. Returns why it cannot, or null.
  const char* share_for(int device, std::uint64_t bytes, std::uint64_t held, std::uint64_t left,
                        Piece& made, SharedBlock& block);

  // For readers.

  /// A rank that this process may still open something of; else null.
  Source* find(int rank) {
    const int index = own_ ? sources_.index_of(rank) : -1;
    if (index < 0) return nullptr;
    Source& source = sources_.all()[static_cast<std::size_t>(index)];
    return source.is_over.load(std::memory_order_relaxed) ? nullptr : &source;
  }

  /// Has this process opened all send staging that a rank shares? Most messages find it so, also
  /// where that is nothing: to tell it again takes longer than a short message may, as each of both
  /// then waits for the other's cache.
  static bool has_all_of(const Source& source) {
    return source.is_known.load(std::memory_order_acquire) &&
           source.seen.load(std::memory_order_relaxed) ==
               source.slots().staging_blocks.load(std::memory_order_relaxed);
  }

  /// Opens the send staging that a rank has shared since. What cannot be opened ends that, which is
  /// said once: the rank will send by other ways. What is under way in the others still comes.
  /// receiving_ is held.
  void open_new(Source& source, int device);

  /// Says so of messages, once.
  void say_not(const std::string& messages, const char* problem);

  Nonce nonce_{};
  int rank_ = -1;
  std::size_t limit_ = 0;
  std::mutex sending_;
  std::mutex receiving_;
  Sources sources_;
  std::atomic<bool> is_used_{false};

 private:
  struct Staging {
    Piece piece;
    memory::Ranges free;
  };
  struct Sent {
    Transfer transfer;
    std::uint64_t operation;
    std::uint64_t begin;   ///< of its memory in the room that it is part of
    memory::Ranges* room;  ///< null: it has none
    Account* account;      ///< null: nobody's
  };

  /// As SlotSegment::opened has it; a rank that is elsewhere is unreachable.
  std::uint32_t opened_by(int rank, std::memory_order order) const {
    const int index = own_ ? sources_.index_of(rank) : -1;
    return index < 0 ? SlotSegment::unreachable : own().opened[index].load(order);
  }
  void reclaim(std::size_t count);
  bool is_over(const Sent& sent) const;
  void acknowledge_all(const Transfer& transfer);

  const std::size_t segment_bytes_;
  HostMemory own_;
  const char* other_way_ = nullptr;  ///< null: MPI alone

  std::deque<Staging> staging_;
  std::size_t held_ = 0;             ///< bytes of that
  std::uint64_t until_growing_ = 0;  ///< reservations until memory is asked for again
  memory::Ranges free_slots_{SlotSegment::most_slots};
  std::deque<Sent> sent_;
  FullLooks full_looks_;  ///< of those
  /// By the first slot of a transfer: its sender has not done with it.
  std::array<std::atomic<bool>, SlotSegment::most_slots> is_held_{};
  /// By the first slot of a reader's row, of transfers with a window: its rank.
  std::array<int, SlotSegment::most_slots> reader_of_{};
  std::uint32_t serial_ = 0;       ///< of transfers
  int own_mapped_by_ = gpu::host;  ///< the device that the own segment was mapped with
  bool is_map_tried_ = false;
  std::atomic<bool> is_mapped_{false};  ///< queues may write there
  std::atomic<bool> is_said_{false};
};

}  // namespace mpress::link
