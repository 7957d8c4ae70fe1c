// Chunks of messages on their way by MPI: a send is over for the program once its data lies in
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

namespace mpress::link {

/// Thread-safe. Its lock is not held while MPI runs.
class Outbox {
 public:
  /// A chunk that MPI is sending.
  struct Chunk {
    MPI_Request request;
    memory::Buffer data;
    std::uint64_t operation;    ///< the serial number of its message
    int peer;                   ///< rank in MPI_COMM_WORLD
    trace::Event on_wire;       ///< what the timeline will show of it
    bool is_cancelled = false;  ///< MPI was asked to
  };

  /// For a job of `ranks` ranks.
  void open(int ranks) { sent_ = std::vector<std::uint64_t>(static_cast<std::size_t>(ranks)); }

  /// May chunks of `bytes` in all be added without holding more than `limit`?
  bool has_room(std::size_t bytes, std::size_t limit) const {
    return bytes <= limit && held_.load(std::memory_order_relaxed) <= limit - bytes;
  }

  bool empty() const { return size() == 0; }
  std::size_t size() const { return count_.load(std::memory_order_relaxed); }

  void add(Chunk chunk);

  /// Forgets what MPI has sent; looks at a few chunks only. True where something was forgotten.
  bool progress();

  /// At the end of a blocking call: the program may now compute for long without calling MPI, so
  /// chunks that are moving are given the time to leave. Returns as soon as nothing moves.
  void flush();

  /// No receiver will ask for the chunks of this message.
  void cancel(std::uint64_t operation);

  /// Is MPI yet to decide whether some chunk was cancelled?
  bool is_cancelling() const { return cancelling_.load(std::memory_order_relaxed) > 0; }

  /// How many chunks were sent to each rank and not cancelled. To be read when nothing is added
  /// any more.
  const std::vector<std::uint64_t>& sent() const { return sent_; }

 private:
  bool forget_one();

  std::mutex mutex_;
  std::deque<Chunk> chunks_;           ///< but for those that a thread looks at
  std::atomic<std::size_t> count_{0};  ///< those included
  std::atomic<std::size_t> held_{0};   ///< bytes
  std::atomic<std::size_t> cancelling_{0};
  std::vector<std::uint64_t> sent_;
  std::atomic<std::uint64_t> backoff_ns_{longest_backoff_ns};

  static constexpr std::uint64_t longest_backoff_ns = 2'000'000;
  static constexpr std::uint64_t shortest_backoff_ns = 10'000;
};

}  // namespace mpress::link
