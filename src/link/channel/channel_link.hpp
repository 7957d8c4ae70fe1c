// The link over a channel: blocks as its messages, under the tag that a transfer's route names, in
// order between two ranks. No send waits for a block to be received.
//
// A slot is memory of this process's that the channel sends from, a device's where the channel
// takes that; what comes in lies where the reader has room for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "link/channel/channel.hpp"
#include "link/channel/outbox.hpp"
#include "link/link.hpp"
#include "link/pacer.hpp"
#include "memory/buffer_pool.hpp"

namespace mpress::link {

class ChannelLink final : public Link {
 public:
  /// Where slots come from. Thread-safe.
  class Memory {
   public:
    /// Host memory that the channel sends from; pinned where queues of `device` write there.
    virtual memory::Buffer take(int device, std::size_t bytes) = 0;

    /// The same of `device`; empty where the channel takes none of it, or there is none to spare.
    virtual memory::Buffer take_near(int /*device*/, std::size_t /*bytes*/) { return {}; }

   protected:
    ~Memory() = default;
  };

  /// `channel`: of the ranks of MPI_COMM_WORLD in their order; it outlives the link, and carries
  /// nothing else under tags below its last. That one is of what readers tell.
  void open(Channel& channel, Memory& memory, Pacer& pacer);

  /// The next operation's number, and the tag of its blocks.
  std::uint64_t next_operation() {
    std::uint64_t next = next_.fetch_add(1, std::memory_order_relaxed);
    // What was cancelled may still come under its tag.
    for (std::uint64_t tried = 0; outbox.is_cancelled(tag_of(next)) && tried < tags_; ++tried) {
      next = next_.fetch_add(1, std::memory_order_relaxed);
    }
    return next;
  }
  int tag_of(std::uint64_t operation) const { return static_cast<int>(operation % tags_); }

  /// Has any block come?
  bool is_used() const { return received_blocks() > 0; }

  /// Publishes memory of the caller's, which lives as long as `owner` does, in place of a slot's:
  /// for transfers that `is_zero_copy` reserved, without memory.
  void publish_from(const Transfer& transfer, std::size_t chunk, const std::byte* data,
                    std::size_t bytes, const std::shared_ptr<const void>& owner);

  /// How long a transfer took, as its reader tells.
  struct ReaderTime {
    int rank;
    std::uint32_t number;  ///< Route::number
    /// From the header, or from when the reader was there for it, until all was read; 0: that says
    /// nothing of the link, as this process or the reader did something else meanwhile.
    std::uint64_t ns;
  };
  /// The next that has come.
  std::optional<ReaderTime> take_reader_time();

  /// Receives and forgets a block that nobody asks for any more; false where there is none.
  bool drain_one(memory::BufferPool& pool);

  /// The part of the rest of the process in its end.
  class Shutdown {
   public:
    /// Lets everything proceed that is under way.
    virtual void proceed() = 0;
    /// Is nothing of this process's under way? `pending()` changes with every step.
    virtual bool is_idle() const = 0;
    virtual std::uint64_t pending() const = 0;
    /// All that was sent has come: what ranks share by other links is closed now, and freed when
    /// all have done so.
    virtual void close_others() = 0;
    /// A rank whose process has ended; negative where none is known to.
    virtual int find_ended() const = 0;

   protected:
    ~Shutdown() = default;
  };

  /// Collective over MPI_COMM_WORLD: returns when all that was sent has been received, or drained
  /// where its header never reached a receive of the program's. False, and a sentence is said,
  /// where a rank has ended without that, or nothing has moved for long.
  bool shut_down(Shutdown& shutdown);

  Outbox outbox;

 private:
  class Reader;
  struct Sending;
  struct Word;

  Kind kind() const override { return Kind::channel; }
  bool may_reach(int) const override { return channel_ != nullptr; }
  bool reaches(int) const override { return channel_ != nullptr; }
  bool connect(int, int) override { return true; }
  void advance() override { outbox.progress(); }

  /// Memory for all blocks of a region of the host's, so that no later one lacks it, or of a device
  /// that the channel sends from; other blocks from devices get it when they are made.
  bool reserve(const Reservation& wanted, Transfer& transfer) override;
  void lay_out(const Transfer&) override {}
  std::byte* place(const Transfer& transfer, std::size_t chunk, std::size_t bytes) override;
  bool devices_publish() const override { return false; }
  Report* report(const Transfer&, std::size_t) override { return nullptr; }
  void publish(const Transfer& transfer, std::size_t chunk, std::size_t bytes) override;
  void release(const Transfer& transfer) override { abandon(transfer); }
  bool fail(const Transfer& transfer) override;
  void abandon(const Transfer& transfer) override;
  void cancel(std::uint64_t operation) override { outbox.cancel(operation, tag_of(operation)); }

  bool knows(int, Route route, std::uint64_t) override {
    return channel_ != nullptr && route.number < tags_;
  }
  std::unique_ptr<Inbound> receive(const Expected& expected) override;
  bool discard(int, Route, std::uint64_t) override { return false; }

  int reader_tag() const { return static_cast<int>(tags_); }
  void tell(int rank, const Word& word);
  void hand_over(Sending& sending, std::size_t chunk, const std::byte* data, std::size_t bytes,
                 const std::shared_ptr<const void>& owner);

  /// Counts a block that has come.
  void received() { received_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t received_blocks() const { return received_.load(std::memory_order_relaxed); }

  Channel* channel_ = nullptr;
  std::uint64_t tags_ = 1;
  Memory* memory_ = nullptr;
  Pacer* pacer_ = nullptr;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::uint64_t> received_{0};
  std::atomic<bool> is_shut_down_{false};  ///< nothing is announced any more
};

}  // namespace mpress::link
