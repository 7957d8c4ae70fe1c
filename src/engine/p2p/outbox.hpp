// Chunks of large messages on their way: a send is over for the program once its data lies in
// memory of mpress's and was handed to MPI, so what MPI has yet to take waits here.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "memory/buffer_pool.hpp"
#include "mpi/calls.hpp"
#include "trace/timeline.hpp"

namespace mpress::engine {

/// Thread-safe.
class Outbox {
 public:
  /// A chunk that MPI is sending.
  struct Parcel {
    MPI_Request request;
    memory::Buffer data;
    std::uint64_t message;   ///< the serial number of its message
    int peer;                ///< rank in MPI_COMM_WORLD
    trace::Event on_wire;    ///< what the timeline will show of it
    bool cancelled = false;  ///< MPI was asked to
  };

  /// For a job of `ranks` ranks.
  void open(int ranks) { sent_ = std::vector<std::uint64_t>(static_cast<std::size_t>(ranks)); }

  /// May chunks of `bytes` in all be added without holding more than `limit`?
  bool has_room(std::size_t bytes, std::size_t limit) const {
    return bytes <= limit && held_.load(std::memory_order_relaxed) <= limit - bytes;
  }

  bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }

  std::size_t size() const { return count_.load(std::memory_order_relaxed); }

  void add(Parcel parcel);

  /// Forgets what MPI has sent; looks at a few parcels only. True where something was forgotten.
  bool progress();

  /// At the end of a blocking call: the program may now compute for long without calling MPI, so
  /// chunks that are moving are given the time to leave. Returns as soon as nothing moves.
  void linger();

  /// The header of this message was cancelled: its chunks will not be asked for.
  void cancel(std::uint64_t message);

  /// Is MPI yet to decide whether some chunk was cancelled?
  bool is_cancelling() const { return cancelling_.load(std::memory_order_relaxed) > 0; }

  /// How many chunks were sent to each rank and not cancelled. To be read when nothing is added
  /// any more.
  const std::vector<std::uint64_t>& sent() const { return sent_; }

 private:
  bool forget_one();

  std::mutex mutex_;
  std::deque<Parcel> parcels_;
  std::atomic<std::size_t> count_{0};
  std::atomic<std::size_t> held_{0};  ///< bytes
  std::atomic<std::size_t> cancelling_{0};
  std::vector<std::uint64_t> sent_;
  std::atomic<std::uint64_t> patience_ns_{longest_patience_ns};

  static constexpr std::uint64_t longest_patience_ns = 2'000'000;
  static constexpr std::uint64_t shortest_patience_ns = 10'000;
};

}  // namespace mpress::engine
