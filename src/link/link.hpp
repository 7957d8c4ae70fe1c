// Links: how opaque blocks get to other ranks.
//
// A link knows ranks, devices and memory; it knows no codec, no element, no message. The sender
// reserves slots, lets an encoder or a copy write there, and publishes them, or has a device do so
// in stream order; each reader polls them, reads where a block landed, and acknowledges, by its
// host or in stream order. What a slot is made of is the link's business. No call waits for another
// rank or for a device, and none takes a lock that is held while MPI runs.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "gpu/gpu.hpp"
#include "link/liveness.hpp"
#include "link/route.hpp"
#include "trace/timeline.hpp"

namespace mpress::link {

/// What tells that a block is where it should be: written by the sender's device itself, in one
/// store of 16 bytes behind the block, or by its host.
using Report = gpu::Report;

/// What an operation may hold of a link, so that none waits for slots which another one holds:
/// where its share is used up, a block takes another way. Outlives its transfers.
class Account {
 public:
  explicit Account(std::uint64_t limit = UINT64_MAX) : limit_(limit) {}

  /// To be set before anything is held.
  void set_limit(std::uint64_t limit) { limit_ = limit; }

  /// Bytes of slots that it holds now.
  std::uint64_t held() const { return held_.load(std::memory_order_relaxed); }

  bool has_room(std::uint64_t bytes) const { return bytes <= limit_ && held() <= limit_ - bytes; }

  // For links:
  void take(std::uint64_t bytes) { held_.fetch_add(bytes, std::memory_order_relaxed); }
  void give(std::uint64_t bytes) { held_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  std::uint64_t limit_;
  std::atomic<std::uint64_t> held_{0};
};

/// Slots in a row, reserved together; for several readers as many rows, one behind the other, of
/// the same memory.
struct Transfer {
  std::uint32_t first = 0;
  std::uint32_t chunks = 0;  ///< slots for each reader; 0: nothing is reserved
  std::uint32_t readers = 1;
  std::uint64_t chunk_room = 0;  ///< bytes from one slot's memory to the next's
  std::byte* memory = nullptr;   ///< the first slot's, for the sender's device; null: see place()
  bool is_on_host = false;       ///< that memory is the host's: copy engines write there best
  void* record = nullptr;        ///< the link's own
  /// Bytes of all blocks, where they go as they are and are published by runs; 0: each by itself.
  std::uint64_t raw_bytes = 0;
  bool is_near = false;  ///< place() gives memory of the sender's own device, for all slots at once
  /// So many slots have memory, which the ones behind take in turn: see Link::is_free(). 0: all.
  std::uint32_t window = 0;

  std::uint32_t places() const { return window > 0 ? window : chunks; }
  std::uint64_t bytes() const { return places() * chunk_room; }

  /// The memory of a slot, where that is the device's: 256-byte aligned. Slots of a multiple of 256
  /// bytes lie one behind the other.
  std::byte* place(std::size_t chunk) const { return memory + chunk % places() * chunk_room; }

  /// The first slot of a reader: what its route names. The others of its row follow.
  std::uint32_t first_of(std::uint32_t reader) const { return first + reader * chunks; }
  std::uint32_t slots() const { return chunks * readers; }

  /// Runs of slots that are published together, by the report of the first: 4, and then each four
  /// times as long as the one before. A device copies within its memory several times as fast as
  /// another reads that, so the next run is there when it is wanted; and a launch takes the host as
  /// long as copying the first run takes the device.
  static constexpr std::uint32_t run_behind(std::uint32_t first) { return 4 * (first + 1); }
};

/// What is to be reserved.
struct Reservation {
  std::span<const int> readers;  ///< ranks in MPI_COMM_WORLD, one or several
  int device;                    ///< whose queues write
  std::size_t chunks;            ///< slots for each reader
  std::size_t bytes;             ///< room of each
  std::uint64_t operation;       ///< for cancel()
  Account* account = nullptr;    ///< null: nobody counts
  trace::Event like = {};        ///< what the timeline shows of all its blocks
  bool may_exceed = false;       ///< what the account has room for
  bool is_timed = false;         ///< readers tell how long it took; for the channel link
  bool is_zero_copy = false;     ///< the caller has the memory; for the channel link
  /// Payloads for one reader, whose device may have them in memory of its own: it reads them
  /// repeatedly.
  bool may_be_at_reader = false;
  /// Memory for so many blocks at a time is enough, as the writer asks is_free() for each; 0: for
  /// all. Links may give more.
  std::size_t window = 0;
};

/// A block that has come; or several one behind the other, as they are.
struct Arrived {
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
  int device = gpu::host;  ///< whose queues reach it, or the host
  bool is_near = false;    ///< it lies in memory of that device's own
  std::uint64_t chunks = 1;
  /// That a queue of `device` is to set to 1 once it has read it, in place of acknowledge(); null:
  /// none.
  std::uint32_t* flag = nullptr;
  std::uint64_t begin_ns = 0;  ///< when it was asked for; 0: not known
};

/// The reader's memory for blocks of a link that copies them there.
class ReceiveBuffers {
 public:
  /// Whose memory it is: the host's, or a device's to which the link copies blocks.
  virtual int memory_device() const { return gpu::host; }

  /// For block `chunk` of up to `bytes` bytes; null while there is none. Asked for in order, once
  /// or several times.
  virtual std::byte* place_of(std::uint64_t chunk, std::size_t bytes) = 0;

 protected:
  ~ReceiveBuffers() = default;
};

/// How reports call the way of a message whose header announces blocks of such a link.
constexpr trace::Way way_by(Kind kind) {
  const Attributes* const about = attributes_of(kind);
  return about ? static_cast<trace::Way>(about->way) : trace::Way::chunks;
}

class Inbound;
class Link;

/// What a reader knows of the blocks of a transfer before they come.
struct Expected {
  int rank;  ///< whose they are
  Route route;
  std::uint64_t chunks;
  std::size_t chunk_bytes;  ///< the most that each has, but for the last
  std::size_t last_bytes;
  bool as_they_are;            ///< blocks have just these sizes, and may be read several at once
  int device;                  ///< whose queues will read them, or the host
  ReceiveBuffers* buffers;     ///< outlives the Inbound
  Link* other;                 ///< where blocks may come by instead: the channel link
  std::uint64_t begin_ns = 0;  ///< when they set out, for a link that is paced; 0: when they come

  std::uint64_t bytes() const { return (chunks - 1) * chunk_bytes + last_bytes; }
  std::size_t bytes_of(std::uint64_t chunk) const {
    return chunk + 1 < chunks ? chunk_bytes : last_bytes;
  }
};

/// A transfer as one of its readers has it. One thread at a time.
class Inbound {
 public:
  Inbound() = default;
  Inbound(const Inbound&) = delete;
  Inbound& operator=(const Inbound&) = delete;
  virtual ~Inbound() = default;

  /// Has block `chunk` come, the first that poll() has not given yet? `arrived` holds until it is
  /// acknowledged. Failed: it will not come, for the reason that problem() tells; the next one may.
  virtual gpu::State poll(std::uint64_t chunk, Arrived& arrived) = 0;
  virtual const char* problem() const = 0;

  /// Did something come that cannot be such a block?
  virtual bool is_corrupt() const { return false; }

  /// The first `chunks` blocks were read, or given up, and their memory is not needed any more.
  virtual void acknowledge(std::uint64_t chunks) = 0;

  /// Acknowledges all blocks. `by_flag`: a device has set the flag, if it was to; else it may have.
  virtual void finish(bool by_flag) = 0;

  /// What came was no block of this transfer: nothing more is expected of its sender.
  virtual void give_up() {}

  /// The reader does nothing else until all has come: no device need tell the sender.
  virtual void await() {}

  /// Does the sender wait until this reader's host has acknowledged what it has begun to take?
  virtual bool needs_host() const { return false; }

  virtual trace::Way way() const = 0;
};

class Link {
 public:
  virtual Kind kind() const = 0;

  /// Might blocks to this rank go this way, now or once the two have connected? Like reaches(), it
  /// costs a few nanoseconds.
  virtual bool may_reach(int rank) const = 0;

  /// Can it now?
  virtual bool reaches(int rank) const = 0;

  /// A step towards reaching each other, at the reader's: to be called when a block from `rank` has
  /// come to memory of `device`, by whatever way. Costs a few nanoseconds mostly. False where no
  /// block from there can come this way, as far as this process has found.
  virtual bool connect(int rank, int device) = 0;

  /// Lets go of what has left, and lets what is under way proceed; for links that need that.
  virtual void advance() {}

  // Writing.

  /// Slots in memory that all readers reach. False, and `transfer` is as before, where there is no
  /// room now, nor in the operation's account: the block takes another way, and what there is too
  /// little of is made, for later.
  virtual bool reserve(const Reservation& wanted, Transfer& transfer) = 0;

  /// Makes the slots known to their readers as not there yet. Before a reader hears of the
  /// transfer.
  virtual void lay_out(const Transfer& transfer) = 0;

  /// Can devices publish slots by themselves? Then their queues write to report().
  virtual bool devices_publish() const = 0;

  /// The memory for block `chunk` of `bytes` bytes, at most what was reserved; the device's where
  /// Transfer::memory or Transfer::is_near is set, else host memory, pinned where a device's queues
  /// write. The same until it is published. Null: none now.
  virtual std::byte* place(const Transfer& transfer, std::size_t chunk, std::size_t bytes) = 0;

  /// Have all readers read what was in the memory of block `chunk` before? One whose process has
  /// ended counts as if it had.
  virtual bool is_free(const Transfer&, std::size_t /*chunk*/) const { return true; }

  /// What tells that a block, or the run that begins with it, is there: for gpu::Piece::published,
  /// or its sequence for gpu::Queue::write().
  virtual Report* report(const Transfer& transfer, std::size_t chunk) = 0;

  /// The host's word that a block is where it should be, and has `bytes` bytes. In order.
  virtual void publish(const Transfer& transfer, std::size_t chunk, std::size_t bytes) = 0;

  /// The writer has done with a transfer: all of it is published, and its queue was seen done. The
  /// memory comes free once all readers have acknowledged.
  virtual void release(const Transfer& transfer) = 0;

  /// What was not published will never come; no device works at it any more. Releases the transfer.
  /// False where a reader has begun to take it otherwise: that goes on.
  virtual bool fail(const Transfer& transfer) = 0;

  /// No reader has heard of the transfer, nor will. Releases it.
  virtual void abandon(const Transfer& transfer) = 0;

  /// No reader will ask for the slots of this operation.
  virtual void cancel(std::uint64_t operation) = 0;

  // Reading.

  /// Is the transfer that a route names one of `rank`'s, as far as can be known?
  virtual bool knows(int rank, Route route, std::uint64_t chunks) = 0;

  /// The device whose memory its blocks come to; the host where they do not.
  virtual int lands_on(int /*rank*/, Route /*route*/) { return gpu::host; }

  /// Begins to receive the blocks of a transfer that is known.
  virtual std::unique_ptr<Inbound> receive(const Expected& expected) = 0;

  /// The blocks of a transfer will not be asked for. False where they come all the same, by the
  /// channel.
  virtual bool discard(int rank, Route route, std::uint64_t chunks) = 0;

 protected:
  ~Link() = default;
};

/// Where other ranks of a host find what a process shares by a link: opaque to all but that link.
class Address {
 public:
  Address() = default;
  template <typename Content>
  explicit Address(const Content& content) {
    static_assert(std::is_trivially_copyable_v<Content> && sizeof content <= sizeof bytes_);
    std::memcpy(bytes_.data(), &content, sizeof content);
  }
  template <typename Content>
  Content as() const {
    Content content;
    std::memcpy(&content, bytes_.data(), sizeof content);
    return content;
  }

 private:
  std::array<std::byte, 128> bytes_{};
};

/// A rank of this host.
struct Neighbour {
  int rank;  ///< in MPI_COMM_WORLD
  ProcessId process;
  Address address;
};

/// Of memory that is held for blocks on their way.
struct Limits {
  std::size_t bytes;
  bool may_grow = false;  ///< to what a device with much memory does not miss
};

/// A link between devices, one of the list (link/list.hpp).
class DeviceLink : public Link {
 public:
  using Nonce = std::array<std::uint8_t, 16>;

  /// Makes what this process shares by it; where the system refuses, or `is_wanted` says, it stays
  /// closed. `nonce`: the job's.
  virtual Address open(const Nonce& nonce, int rank, bool is_wanted) = 0;

  /// Notes the ranks of this host, this one included, in an order that all of them share.
  /// `other_way`: which is tried for GPUs that cannot be reached, in a few words; null: MPI alone.
  virtual void set_ranks(const std::vector<Neighbour>& ranks, const Limits& limits,
                         const char* other_way) = 0;

  virtual bool is_open() const = 0;

  /// Has a block ever come to this process by it?
  virtual bool is_used() const = 0;

  // The end: nothing is under way, and first all ranks close, then each frees what it shares.

  virtual void close() = 0;
  virtual void free_memory() = 0;

 protected:
  ~DeviceLink() = default;
};

/// A link by memory that the processes of one host have open. Slots stay where they are, so kernels
/// of all their readers' devices may work there together.
class MemoryLink : public DeviceLink {
 public:
  /// Do queues of `device` reach what `rank` shares? Those of the device that first got a block
  /// from it do, if any.
  virtual bool is_read_by(int rank, int device) = 0;

  /// Does the process of `rank` still exist?
  virtual bool lives(int rank) const = 0;

 protected:
  ~MemoryLink() = default;
};

}  // namespace mpress::link
