// Work on one device, done in the order in which it is given: copies, flags, and when work is over.
//
// A queue has three interfaces, a header each: Queue; CodecQueue (gpu/codec_queue.hpp), by which
// devices do with elements what the codec layer does on the host; CollectiveQueue
// (gpu/collective_queue.hpp), by which kernels of several members work together. A function takes
// the one that it needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/report.hpp"
#include "codec/status.hpp"
#include "gpu/runs.hpp"

namespace mpress::gpu {

class CodecQueue;
class CollectiveQueue;

/// What has become of work in a queue.
enum class State : std::uint8_t {
  pending,
  done,
  failed,  ///< the device refuses to work, mostly because of an earlier error of the program's
};

/// Of queues that compete for a device. Where it has the levels for that, all come before what the
/// program gives it by default.
enum class Priority : std::uint8_t {
  usual,
  first,  ///< its kernels begin before what is left of others'
};

/// A piece of work in a queue. Those of one queue are done in the order in which they were given.
using Event = std::uint64_t;

/// What an encoder or a decoder tells.
struct Outcome {
  std::size_t bytes = 0;  ///< of the payload
  codec::Status status = codec::Status::ok;
};

using mpress::Report;

/// Bytes to be copied; the two places do not overlap.
struct Copy {
  void* to;
  const void* from;
  std::size_t bytes;
};

/// Work that the program has given to streams of its own, until a moment. Thread-safe.
class PriorWork {
 public:
  virtual ~PriorWork() = default;

  /// What has become of it. Asks the driver.
  virtual State query() const = 0;
};

/// Work on one device, in order, beside that of other queues. One thread at a time may use a queue.
/// Memory given to it stays valid until the work is done; lists of runs are read during the call.
class Queue {
 public:
  virtual ~Queue() = default;

  /// This queue's other interfaces, which live as long as it does. Work given by any of the three
  /// is done in one order; query() and drain() are for all of it.
  virtual CodecQueue& codecs() = 0;
  virtual CollectiveQueue& collectives() = 0;

  /// Copies `bytes` bytes between memory of the queue's device, of other devices and of the host,
  /// in any direction; they do not overlap. Where host memory is not pinned, the call may wait
  /// until the copy is done. `flag`: host memory from Gpu::map() that the device writes 1 to when
  /// it is done; null: none.
  virtual Event copy(void* to, const void* from, std::size_t bytes, std::uint32_t* flag) = 0;
  Event copy(void* to, const void* from, std::size_t bytes) {
    return copy(to, from, bytes, nullptr);
  }
  /// The same, and the next copy does not wait until the flag is written. Nothing but copies may be
  /// given behind it until a copy() or drain() ends them.
  virtual Event copy_ahead(void* to, const void* from, std::size_t bytes, std::uint32_t* flag) = 0;

  /// Copies, one or more and at most `most_copies`, by one kernel, between memory that kernels of
  /// the queue's device reach, its own or opened for it: sooner done than copy() where they are
  /// short, where they are many, and where both sides are the device's own. `flag`: as for copy().
  virtual Event copy_near(std::span<const Copy> copies, std::uint32_t* flag) = 0;
  static constexpr std::size_t most_copies = 160;

  Event copy_near(std::span<const Copy> copies) { return copy_near(copies, nullptr); }
  Event copy_near(void* to, const void* from, std::size_t bytes, std::uint32_t* flag = nullptr) {
    const Copy one{to, from, bytes};
    return copy_near({&one, 1}, flag);
  }

  /// Packs: the `runs` of a buffer, back to back, to `packed`; both on the queue's device.
  virtual Event gather(void* packed, const void* buffer, const Runs& runs) = 0;

  /// The opposite; what lies between the runs is not touched.
  virtual Event scatter(void* buffer, const void* packed, const Runs& runs) = 0;

  /// Writes `value` to host memory from Gpu::map() when all work given before is done. Whoever
  /// reads it there, with acquire, and in whatever process, finds all that this work wrote.
  virtual Event write(std::uint32_t* flag, std::uint32_t value) = 0;

  /// Holds up all work given later until `*flag` has reached `value`: (int32_t)(*flag - value) >=
  /// 0, so that flags may count on for ever. `flag`: as for write(). What its writer, a host or a
  /// device, had written before is then visible to that work.
  ///
  /// Nobody bounds the wait but the caller: until it ends, drain() and the queue's destruction do
  /// not return, and streams of other queues that share a channel of the device with this one may
  /// be held up too. So a caller waits only for what is under way already or cannot fail to come,
  /// keeps an eye on the writer, and ends a wait that it has given up by writing `value` to the
  /// flag itself: what it gave later must be harmless then. Only where can_wait().
  virtual Event wait(const std::uint32_t* flag, std::uint32_t value) = 0;
  virtual bool can_wait() const = 0;

  /// All work given later waits for this, which may be other devices'; where the device refuses to,
  /// it fails.
  virtual void wait_for(const PriorWork& work) = 0;

  /// What the program enqueues on `stream`, one of the queue's device, from now on waits for all
  /// work given until now. False as for Gpu::work_of().
  virtual bool signal(void* stream) = 0;

  /// What has become of a piece of work; `outcome`, which may be null, is set for one that encodes,
  /// decodes or adds when it is done, the first time it is asked for. Costs a look at memory.
  virtual State query(Event event, Outcome* outcome = nullptr) = 0;

  /// Waits until all work is done, or has failed. Only an idle queue is destroyed.
  virtual void drain() = 0;

  virtual int device() const = 0;
  virtual Priority priority() const = 0;
};

}  // namespace mpress::gpu
