// GPUs as the engine sees them: where memory lies, work in queues, the codecs on a device.
//
// A library of its own implements this, so that nothing else of mpress depends on CUDA:
// libmpress_cuda.so, loaded when the program first passes memory of a device, or the one that
// MPRESS_GPU names (tests use a simulated device). No call throws. None but those that allocate
// waits for a device, and none uses a stream of the program's but Gpu::work_of(), default_work()
// and Queue::signal().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "codec/combine.hpp"
#include "codec/element.hpp"
#include "codec/range_of.hpp"
#include "codec/report.hpp"
#include "codec/spec.hpp"
#include "codec/status.hpp"
#include "gpu/runs.hpp"

namespace mpress::gpu {

/// Changes with this header: a library of another version is not used.
inline constexpr std::uint32_t interface_version = 25;

/// No device: memory that the host may touch, be it pinned, managed, or of no GPU at all.
inline constexpr int host = -1;

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

using codec::Combine;
using codec::RangeOf;
using mpress::Extent;
using mpress::Report;

/// Elements to be encoded, and where their payload goes: 16-byte aligned, with room for
/// codec::max_payload_bytes().
struct Piece {
  const void* elements;
  std::size_t count;
  void* payload;
  /// Where the device publishes the payload without this process's host: in memory from Gpu::map(),
  /// which other processes may map too. Null: only query() tells. encode() sets `sequence` to 0.
  /// Until query() has said that the piece, or one given later, is done or failed, nobody else
  /// writes there and the memory stays mapped. A piece that fails may never report: the host that
  /// gave it finds that by query(), and tells the readers in its own way.
  Report* published = nullptr;
};

/// Bytes to be copied; the two places do not overlap.
struct Copy {
  void* to;
  const void* from;
  std::size_t bytes;
};

/// A payload to be decoded, 16-byte aligned. Nobody has checked it.
struct Incoming {
  const void* payload;
  std::size_t bytes;
  void* elements;
  std::size_t count;
  /// Where the host does not know the size yet: the payload's report, in memory from Gpu::map(),
  /// which is there when the work begins (Queue::wait()). Then `bytes` is what the payload has room
  /// in. Every thread block reads it over the bus.
  const Report* report = nullptr;
};

/// A payload of szp to be added, untrusted.
struct Summand {
  const void* payload;
  std::size_t bytes;
  const Report* report = nullptr;  ///< as an Incoming's
  /// Elements lie there, aligned as their type, which count as what the spec makes of them; `bytes`
  /// does not count.
  bool is_elements = false;
};

/// Payloads to be added, 2 to `most_summands`; more than one may be the same.
struct Sum {
  std::span<const Summand> summands;  ///< read during the call
  std::size_t count;                  ///< elements of each
  void* payload;                      ///< as a Piece's; overlaps no summand
  Report* published = nullptr;        ///< as a Piece's
  /// Unless null, where the sum's elements go, as decode() has them: aligned as their type,
  /// overlapping no summand, unspecified where the sum is none of quanta.
  void* decoded = nullptr;
};

/// A member's share of what several combine together, each by a queue of its own, in one process or
/// in several: Queue::combine_jointly(). What all of them are given is the same but for what says
/// otherwise.
struct Joint {
  /// Joint memory of each member (gpu/joint.hpp), up to joint::most_members, as kernels of this
  /// queue's device reach it; its own at `member`. cleared_bytes() were 0 before its first use.
  std::span<std::byte* const> memory;
  unsigned member;  ///< differs
  /// Not 0, and another than at all uses of that memory before. Nothing reads it any more, on any
  /// device, that was given with another number.
  std::uint32_t call;
  /// In elements: part i is from [i] to [i + 1]. One part; or one for each member, which combines
  /// it.
  std::span<const std::uint64_t> begins;
  /// Of one part: who combines it, a bit for each member; one of these or all.
  std::uint32_t combiners;
  /// Of several parts: all members get all of them.
  bool gathers;
  bool in_lines;        ///< it travels so: no part has more bytes than joint::most_in_lines
  bool has_long_lines;  ///< the memory has room for them; else what is in lines is brief
  const void* input;    ///< differs; all parts, one behind the other
  /// Differs. Where the part goes that this member combines, or, with `gathers`, all of them; null
  /// where it gets none. May be the input, but for several parts without `gathers`.
  void* out;
  /// Work of the same call that was left undone before goes on.
  bool again = false;
  /// Host memory that devices reach, pinned or from Gpu::map(): gets 1 where others did not come in
  /// time, and not all is done. Differs.
  std::uint32_t* undone;
  /// It waits for the others until its host writes to `undone`, which may not look whether to give
  /// it again. Differs.
  bool is_endless = false;
};

/// A member's share of what several bring each other, each by a queue of its own:
/// Queue::move_jointly(). All of it differs but for `call`, `rooms`, how it travels, and what the
/// members' blocks have in common: what one sends is as long as what the other receives.
struct JointMove {
  /// What goes to a member, of memory of the queue's device.
  struct Outgoing {
    const void* from = nullptr;
    std::uint64_t bytes = 0;
  };
  /// Where what comes of a member goes, in memory of the queue's device that nothing is sent of.
  struct Incoming {
    void* to = nullptr;
    std::uint64_t bytes = 0;
  };

  /// Joint memory of each member (gpu/joint_move.hpp), as kernels of this queue's device reach it;
  /// its own at `member`. cleared_bytes() were 0 before its first use.
  std::span<std::byte* const> memory;
  std::span<const std::uint64_t> rooms;  ///< of a slot in each; no block is longer
  bool in_lines;   ///< they travel so: none has more bytes than joint_move::most_in_lines()
  bool has_lines;  ///< the memory has room for them
  /// What one sends is the same for all who get any, and lies in its memory; not in lines.
  bool is_shared;
  unsigned member;
  /// Not 0, and another than at all uses of that memory before, which are over on all devices.
  std::uint32_t call;
  /// By member. `member` itself: what is copied here; null `to`: nothing is.
  std::span<const Outgoing> sends;
  std::span<const Incoming> receives;
  /// Work of the same call that was left undone before goes on.
  bool again = false;
  std::uint32_t* undone;    ///< as Joint::undone
  bool is_endless = false;  ///< as Joint::is_endless
};

/// A member's share of a sum that several make together, each by a queue of its own:
/// Queue::sum_jointly(). What all of them are given is the same but for what says otherwise.
struct JointSum {
  /// Joint memory of each member (gpu/joint_sum.hpp), as kernels of this queue's device reach it;
  /// its own at `member`. Layout::cleared_bytes() were 0 before its first use.
  std::span<std::byte* const> memory;
  std::span<const std::uint32_t> units;  ///< of each member's Layout
  bool is_on_host;                       ///< the same
  unsigned member;                       ///< differs
  /// The first of the numbers of its laps (joint_sum::laps_of()): not 0, and above those of the use
  /// of that memory before, which is over on the queues of all members.
  std::uint32_t call;
  /// Of each contribution. None: elements are combined as they are, in the order of the members.
  codec::szp::Grid grid;
  Combine how = Combine::sum;  ///< without a grid
  /// In elements: part i, which member i adds up, is `counts[i]` from `begins[i]` on.
  std::span<const std::uint64_t> begins, counts;
  /// Who gets all parts, a bit for each member. None: each gets its own.
  std::uint32_t readers;
  /// The only member that brings anything, to all others, so that this is a broadcast: it has no
  /// part, and is no reader. Negative: all bring something.
  int source = -1;
  const void* input;  ///< differs; the whole vector; null of a member that brings nothing
  /// Differs: the whole vector of a reader's, or where a member's own part goes; null of a member
  /// that gets nothing. May be the input, but where each gets its own.
  void* out;
  /// Work of the same call that was left undone before goes on.
  bool again = false;
  /// Host memory that devices reach, pinned or from Gpu::map(). Differs.
  struct Tally {
    std::uint32_t undone;  ///< gets 1 where others did not come in time, and not all is done
    /// Of a grid with a reach: gets 1 where an element of any member's, or a sum, had no quantum.
    /// All who get all parts are told the same.
    std::uint32_t as_elements;
    std::uint64_t sent, received;  ///< bytes of rows, to all others and from them
    /// Where it is looked for: of what this member brings, as far as this work has read it.
    Extent extent;
  };
  Tally* tally;
  bool finds_range = false;  ///< of a sum with a grid
};

/// Work that the program has given to streams of its own, until a moment. Thread-safe.
class PriorWork {
 public:
  virtual ~PriorWork() = default;

  /// What has become of it. Asks the driver.
  virtual State query() const = 0;
};

/// A block of device memory of the program's.
struct Block {
  std::byte* base;
  std::size_t bytes;
  std::uint64_t id;  ///< no other block of this process has it, or had it
};

/// Work on one device, in order, beside that of other queues. One thread at a time may use a queue.
/// Memory given to it stays valid until the work is done; lists of runs are read during the call.
class Queue {
 public:
  virtual ~Queue() = default;

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

  /// Writes the range of the finite elements of the queue's device, and whether there are others,
  /// to `extent`: host memory that devices reach, from Gpu::map() or pinned. `sequence`: not what
  /// is there. Whoever reads it there, or wait()s for it, finds the rest written.
  virtual Event extent(ElementType type, const void* elements, std::size_t count, Extent* extent,
                       std::uint32_t sequence) = 0;

  /// The spec that encodes these elements of the queue's device: a relative bound becomes absolute
  /// (codec::resolve()). Waits for the device where there is one.
  virtual Spec resolve(const Spec& spec, ElementType type, const void* elements,
                       std::size_t count) = 0;

  /// Encodes pieces, one or more and at most `most_pieces`, in one go: each has an event of its
  /// own, the next after that of the piece before. Returns the first. Elements are on the queue's
  /// device, aligned as their type; payloads there, in memory opened for it, or in the host's from
  /// Gpu::map(). `spec` names a codec; a relative bound is of the range that `range` names: each
  /// piece's own, that of all pieces together, or, for RangeOf::given, that of all that `extents`
  /// tell of together. Those are read when the work begins, in memory as for extent(): they may be
  /// those of other ranks, for which the queue waits. Their bounds are values of `type`.
  virtual Event encode(const Spec& spec, ElementType type, std::span<const Piece> pieces,
                       RangeOf range, std::span<const Extent> extents) = 0;
  static constexpr std::size_t most_pieces = 256;

  Event encode(const Spec& spec, ElementType type, std::span<const Piece> pieces,
               RangeOf range = RangeOf::call) {
    return encode(spec, type, pieces, range, {});
  }
  /// By the range that `extents` tell of, or, where there are none, that of all pieces.
  Event encode(const Spec& spec, ElementType type, std::span<const Piece> pieces,
               std::span<const Extent> extents) {
    return encode(spec, type, pieces, extents.empty() ? RangeOf::call : RangeOf::given, extents);
  }
  Event encode(const Spec& spec, ElementType type, const void* elements, std::size_t count,
               void* payload) {
    const Piece piece{elements, count, payload};
    return encode(spec, type, {&piece, 1});
  }

  /// Decodes payloads, one or more and at most `most_pieces`, in one go, and combines the elements
  /// with those that are there; events as for encode(). Memory as for encode(), on the queue's
  /// device; elements of different payloads do not overlap. Where a payload is found wrong, its
  /// elements are unspecified.
  virtual Event decode(const Spec& spec, ElementType type, std::span<const Incoming> payloads,
                       Combine how) = 0;

  Event decode(const Spec& spec, ElementType type, const void* payload, std::size_t bytes,
               void* elements, std::size_t count, Combine how = Combine::replace) {
    const Incoming incoming{payload, bytes, elements, count};
    return decode(spec, type, {&incoming, 1}, how);
  }

  /// Adds payloads of szp in quanta, to one or more sums and at most `most_pieces`, in one go;
  /// events as for encode(). The Outcome's status is not ok where the host's add()
  /// (codec/szp/format.hpp) says so, codec::Status::inexact among others; the sum's payload is
  /// unspecified then.
  virtual Event add(const Spec& spec, ElementType type, std::span<const Sum> sums) = 0;
  static constexpr std::size_t most_summands = 8;

  /// Combines inputs of `count` elements each, in their order: the first with the second, what
  /// comes of it with the third, and so on. All are on the queue's device and aligned as their
  /// type; `out` may be one of them. `wide`: sums are made in double precision, and rounded once.
  virtual Event combine(Combine how, ElementType type, std::span<const void* const> inputs,
                        void* out, std::size_t count, bool wide) = 0;
  static constexpr std::size_t most_inputs = 256;  ///< one or more, and at most

  /// As codec::combine_in_any_order(); memory as for combine(). The array of more than
  /// `most_inputs` lies in memory of the host that is pinned, until the work is done.
  virtual Event combine_in_any_order(Combine how, ElementType type,
                                     std::span<const void* const> inputs, void* out,
                                     std::size_t count, const codec::szp::Grid& grid) = 0;

  /// Combines what all members bring, in their order, with the bits of combine(): kernels that wait
  /// on the device for those of the other members, each for some milliseconds. So members give this
  /// once all are known to do so, on devices of their own. Where one came too late, `undone` says
  /// so, and the same is given `again`: until then the memory is as it was left; but for one that
  /// is endless. Inputs and results are on the queue's device, aligned as their type.
  virtual Event combine_jointly(Combine how, ElementType type, const Joint& joint) = 0;

  /// Brings the other members what they get of this one, and writes what comes of them: as
  /// combine_jointly(), but that each member stores what it sends in the memory of who gets it.
  virtual Event move_jointly(const JointMove& move) = 0;

  /// Adds up what all members bring on the grid of szp, with the bits of combine_in_any_order(), or
  /// as it is, with those of combine(): as combine_jointly(), but that each member stores what it
  /// has in the memory of those who read it, and quanta travel in few bits. Inputs and results are
  /// on the queue's device, aligned as their type.
  virtual Event sum_jointly(ElementType type, const JointSum& sum) = 0;

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

/// Where an implementation keeps memory; each block is 256-byte aligned.
enum class Place : std::uint8_t {
  device,
  pinned,  ///< host memory that devices reach
};

/// What other processes of this host open memory by. Plain bytes, which mean something to this
/// library alone.
using MemoryHandle = std::array<std::byte, 64>;

/// The GPUs of this machine. One object a process, never destroyed; thread-safe.
class Gpu {
 public:
  virtual std::uint32_t version() const = 0;

  /// What it is, for people: "CUDA 13.0, NVIDIA H200".
  virtual const char* name() const = 0;

  /// The device whose memory `pointer` points to, or `host`.
  virtual int locate(const void* pointer) const = 0;

  /// A queue on `device`; null where the device refuses.
  virtual std::unique_ptr<Queue> open_queue(int device, Priority priority) = 0;
  std::unique_ptr<Queue> open_queue(int device) { return open_queue(device, Priority::usual); }

  /// What the program has enqueued on `stream` until now, one of `device` (a cudaStream_t; null:
  /// the default stream). Null where the device refuses, or `stream` is being captured into a
  /// graph: the capture goes on.
  virtual std::shared_ptr<const PriorWork> work_of(int device, void* stream) = 0;

  /// What the default streams hold now, the legacy one and this thread's own: those of the context
  /// that is current, and those of `device`. Work on streams of the program's own is none of it, be
  /// they blocking ones. Null where the default streams are idle, which is what this is fast for. A
  /// capture of any stream goes on.
  virtual std::shared_ptr<const PriorWork> default_work(int device) = 0;

  /// Null where memory ran out. `device`: for pinned memory, any that the process uses. May wait
  /// for the device, so whoever needs memory often keeps it (memory::BufferPool).
  virtual void* allocate(Place place, int device, std::size_t bytes) = 0;
  /// Nothing that uses the memory is under way any more.
  virtual void release(Place place, int device, void* memory) = 0;

  /// The same number for the same device in all processes of this host, and another for others; 0
  /// where it cannot be told.
  virtual std::uint64_t identity(int device) = 0;

  /// Of the device's memory, whoever has it; 0 where it cannot be told.
  virtual std::size_t memory_bytes(int device) = 0;

  /// Its multiprocessors, times their clock in GHz; 0 where that cannot be told.
  virtual double speed(int device) = 0;

  /// The block on `device` that a pointer of the program's points into. False where it is of no
  /// kind that could be shared.
  virtual bool find_block(int device, const void* pointer, Block& block) = 0;

  /// Lets other processes open a block: one from allocate(Place::device, …), which is released
  /// after they have closed it, or one of the program's, which may free it at any time: drivers
  /// keep the memory until they have closed it. False where the device cannot.
  virtual bool share(int device, void* memory, MemoryHandle& handle) = 0;

  /// A block that another process shares, as queues of `device` reach it, to read and to write.
  /// Null where they cannot. A process opens a block once for a device, and none of its own.
  virtual void* open(int device, const MemoryHandle& handle) = 0;
  /// Nothing uses the memory any more. Waits until the device is idle.
  virtual void close(int device, void* memory) = 0;

  /// Pins host memory that processes share: queues may copy from and to it at full speed, write
  /// there (Report, Queue::write()), and wait for what is written there. `device`: as for
  /// allocate(). False where they cannot.
  virtual bool map(int device, void* memory, std::size_t bytes) = 0;
  /// Nothing writes there any more. May wait as close() does.
  virtual void unmap(int device, void* memory) = 0;

 protected:
  ~Gpu() = default;
};

/// What a library exports: `extern "C" mpress::gpu::Gpu* mpress_gpu()`; null where there is no
/// device after all.
using Entry = Gpu* (*)();
inline constexpr char entry_name[] = "mpress_gpu";

}  // namespace mpress::gpu
