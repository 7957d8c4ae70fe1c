// A rank's statistics, kept in a file mapped into memory so that an abort cannot lose them.
//
// The file is a RecordHeader followed by row_capacity Rows; python/mpress/trace.py reads it. All
// fields are native-endian (little-endian on every supported machine). Rows are claimed by
// atomically setting `key` and only ever grow, so a reader may look at any time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "codec/spec.hpp"

namespace mpress::trace {

/// What the program called. The values are part of the record's format.
enum class Op : std::uint8_t {
  send = 1,
  bsend,
  ssend,
  rsend,
  isend,
  ibsend,
  issend,
  irsend,
  sendrecv,
  isendrecv,
  sendrecv_replace,
  isendrecv_replace,
  start,
  recv,
  irecv,
  mrecv,
  imrecv,
  probe,
  mprobe,
  wait,
  waitall,
  waitany,
  waitsome,
  test,
  testall,
  testany,
  testsome,
  request_get_status,
  alltoall,
  alltoallv,
  alltoallw,
  gather,
  gatherv,
  scatter,
  scatterv,
  allgather,
  allgatherv,
  bcast,
  allreduce,
  reduce,
  reduce_scatter,
  reduce_scatter_block,
  iso_alltoall,
  iso_alltoallv,
  iso_alltoallw,
  iso_allgather,
  iso_allgatherv,
  iso_allgatherw,
  iso_reduce,
  iso_scatter_reduce,
  neighbor_alltoall,
  neighbor_alltoallv,
  neighbor_alltoallw,
  neighbor_allgather,
  neighbor_allgatherv,
  count_
};

/// The operation that a message belongs to.
struct Called {
  Op op;
  std::uint8_t algorithm = 0;  ///< of a collective call: schedule::Algorithm's value; 0: none

  constexpr Called(Op op, std::uint8_t algorithm = 0)  // NOLINT: an Op is one
      : op(op), algorithm(algorithm) {}
  constexpr operator Op() const { return op; }  // NOLINT
};

/// Why a message was left raw. The values are part of the record's format.
enum class Reason : std::uint8_t {
  none = 0,            ///< not left raw
  threshold = 1,       ///< smaller than the threshold
  type = 2,            ///< not a run of f32 or f64
  incompressible = 3,  ///< the frame would have been larger than the message
  policy = 4,          ///< compression does not pay on this path, whatever the ratio
  disabled = 5,        ///< codec none, or switched off
  unaligned = 6,       ///< device memory at an address that its elements may not have
  communicator = 7,    ///< inter-communicator, or a peer of another world
  memory = 8,          ///< no memory for the frame
  sessions = 9,        ///< the process has sessions, and peers may have no world
  device = 10,         ///< memory of a device that mpress cannot work with
  ratio = 11,          ///< compression does not pay with the ratio seen
  unknown = 12,        ///< what messages cost on this path was never measured
  timed = 13,          ///< it went raw to time the link
  forwarded = 14,      ///< it came as it is, and is passed on so
  count_
};
static_assert(static_cast<int>(Reason::count_) <= 16, "4 bits of a row's key");

/// How a message travels. The values are part of the record's format.
enum class Way : std::uint8_t {
  whole = 0,   ///< as one message of MPI's
  chunks = 1,  ///< as a header and chunks, all of them messages of MPI's
  peer = 2,    ///< as a header, while the data goes from GPU to GPU
  direct = 3,  ///< the same, and the receiver has it from where the program has it
  host = 4,    ///< as a header, while the data goes by host memory that both GPUs have pinned
};

/// Why a message in memory of a device did not go from there by a link between devices, or not
/// without a copy at its sender's. The values are part of the record's format.
enum class Fallback : std::uint8_t {
  none = 0,
  other_host = 1,    ///< its receiver is on another host
  closed = 2,        ///< the job has no such link
  too_short = 3,     ///< shorter messages are faster by MPI
  left_to_mpi = 4,   ///< MPI takes memory of devices, and has what is not encoded
  unsuited = 5,      ///< no header can announce it: its type, its communicator, or to itself
  unreachable = 6,   ///< its receiver's GPU, or process, cannot open what this process shares
  not_open = 7,      ///< its receiver has not opened that yet, as of a pair's first messages
  no_room = 8,       ///< staging memory is full
  not_shareable = 9  ///< it went by staging memory, as its own cannot be shared
};

/// Which side of a message a line counts; `complete` is for calls that only wait.
enum class Direction : std::uint8_t { send = 0, receive = 1, complete = 2 };

inline constexpr std::int32_t any_peer = -1;

/// What a line of the statistics is about.
struct Key {
  Direction direction;
  Called called;
  std::int32_t peer;  ///< rank in MPI_COMM_WORLD
  Codec codec = Codec::none;
  Reason reason = Reason::none;
  Way way = Way::whole;
  bool is_on_device = false;  ///< the program's buffer, as far as that was looked at
  Fallback fallback = Fallback::none;
};

/// One line of the statistics: an operation with one peer and one codec.
struct Row {
  /// op | is_on_device << 7 | codec << 8 | fallback << 12 | reason << 16 | algorithm << 20 |
  /// direction << 24 | way << 28 | 1 << 31 | peer << 32
  std::atomic<std::uint64_t> key;
  std::atomic<std::uint64_t> messages;
  std::atomic<std::uint64_t> raw_bytes;
  std::atomic<std::uint64_t> wire_bytes;
  std::atomic<std::uint64_t> encode_ns;
  std::atomic<std::uint64_t> decode_ns;
  std::atomic<std::uint64_t> wait_ns;
  std::atomic<std::uint64_t> errors;  ///< frames that could not be decoded
  /// Of messages received whose data follows a header: from that to the end.
  std::atomic<std::uint64_t> transfer_ns;
  // Absolute errors, as the bits of doubles that are finite and not below 0. Of a reduction's
  // result, in the row of `complete`; else of messages, where they are sent.
  std::atomic<std::uint64_t> bound;      ///< the greatest of those that held; 0: nothing was lost
  std::atomic<std::uint64_t> unbounded;  ///< how many had a loss to which no bound is known here
  std::atomic<std::uint64_t> measured_error;  ///< the greatest of those, where it was measured
};
static_assert(sizeof(Row) == 96);

/// Collective calls of one operation that MPI served for one reason.
struct LeftCalls {
  std::atomic<std::uint64_t> key;  ///< op | address of the reason in this process << 8; 0: unused
  std::atomic<std::uint64_t> calls;
  char why[112];  ///< empty until it has been written
};
static_assert(sizeof(LeftCalls) == 128);
inline constexpr std::size_t left_capacity = 64;

struct RecordHeader {
  char magic[8];  ///< "mpressR1"
  std::uint32_t header_bytes;
  std::uint32_t row_bytes;
  std::uint32_t row_capacity;
  std::int32_t rank;  ///< in MPI_COMM_WORLD
  std::int32_t size;
  std::uint32_t pid;
  std::atomic<std::uint64_t> started_ns;   ///< monotonic clock at MPI_Init
  std::atomic<std::uint64_t> finished_ns;  ///< the same at MPI_Finalize; 0: not reached
  std::uint32_t simulated_link;            ///< 1: paced
  std::uint32_t gpu_aware;                 ///< 1: MPI takes memory of devices
  char host[64];
  char settings[384];             ///< agreed_settings()
  char mpi[128];                  ///< the MPI library's own name of itself
  char profile[4352];             ///< what the policy goes by: a path of any length, and a date
  char said[4096];                ///< what this process said on standard error, a line each
  LeftCalls left[left_capacity];  ///< the last one, of no operation, has what finds no room
};
static_assert(sizeof(RecordHeader) % 8 == 0);

/// The record of this process. Thread-safe after open().
class Record {
 public:
  /// Maps `path`, created anew. With an empty path or where mapping fails, plain memory serves,
  /// the statistics are not kept, and false is returned.
  bool open(const std::string& path);

  RecordHeader& header() { return *header_; }

  /// The row of a key, made at its first use. When the table is full the last row takes the rest.
  Row& row(const Key& key);

  /// Counts a collective call that MPI serves, and why: a literal, by whose address it is found.
  void count_left(Op op, const char* why);

  bool is_open() const { return header_ != nullptr; }

 private:
  LeftCalls& left(std::uint64_t key, const char* why);

  RecordHeader* header_ = nullptr;
  Row* rows_ = nullptr;
};

/// Nanoseconds of a monotonic clock.
std::uint64_t now_ns();

/// Whether several threads may count at once. Set before any does.
inline bool counted_by_threads = true;

inline void add(std::atomic<std::uint64_t>& counter, std::uint64_t value) {
  if (value == 0) return;
  if (counted_by_threads) {
    counter.fetch_add(value, std::memory_order_relaxed);
  } else {  // a fifth of the price
    counter.store(counter.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }
}

/// Counts a message.
inline void add_message(Row& row, std::uint64_t raw_bytes, std::uint64_t wire_bytes) {
  add(row.messages, 1);
  add(row.raw_bytes, raw_bytes);
  add(row.wire_bytes, wire_bytes);
}

/// Makes an error, which is not below 0, at least `value`. What is not finite counts as the largest
/// number.
void raise_error(std::atomic<std::uint64_t>& error, double value);

}  // namespace mpress::trace
