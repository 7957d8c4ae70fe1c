// Chunks of messages on their way by a channel: a send is over for the program once its data lies
// in memory of mpress's and was handed to the channel, so what that has yet to take waits here.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "link/channel/channel.hpp"
#include "link/link.hpp"
#include "memory/buffer_pool.hpp"
#include "trace/timeline.hpp"

namespace mpress::link {

/// Memory that the channel sends from, and who holds it.
struct Held {
  Held(memory::Buffer memory, Account* account) : memory(std::move(memory)), account(account) {
    if (account) account->take(this->memory.capacity());
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    if (account) account->give(memory.capacity());
  }
  const memory::Buffer memory;
  Account* const account;  ///< null: nobody counts
};

/// Thread-safe. Its lock is not held while the channel runs.
class Outbox {
 public:
  /// A chunk that the channel is sending.
  struct Chunk {
    Channel::Pending pending;
    std::shared_ptr<const void> data;  ///< its memory, which several readers' chunks share
    std::uint64_t operation;           ///< for under_way() and cancel()
    int peer;                          ///< rank in MPI_COMM_WORLD
    trace::Event on_wire;              ///< what the timeline will show of it, if it has begun
    bool is_timed = false;             ///< see watch()
  };

  void open(Channel& channel) {
    channel_ = &channel;
    sent_ = std::vector<std::uint64_t>(static_cast<std::size_t>(channel.size()));
  }

  bool empty() const { return size() == 0; }
  std::size_t size() const { return count_.load(std::memory_order_relaxed); }

  void add(Chunk chunk);

  /// Chunks of an operation that are not sent yet, as far as no other thread looks at them.
  std::size_t under_way(std::uint64_t operation) const;

  /// Forgets what is sent; looks at a few chunks only. True where something was forgotten.
  bool progress();

  /// Chunks may take so long on this process's links: flush() gives them that time.
  void be_patient(std::uint64_t ns);

  /// At the end of a blocking call: the program may now compute for long without calling MPI, so
  /// chunks that are moving are given the time to leave. Returns as soon as nothing moves.
  void flush();

  /// Chunks that are timed follow, so many: notes from now on for how long nobody looked at them,
  /// until the last has left.
  void watch(std::size_t chunks);
  /// The time since the last look was spent in MPI, where what is under way proceeds.
  void excuse() {
    if (watched_.load(std::memory_order_relaxed) > 0) {
      looked_ns_.store(trace::now_ns(), std::memory_order_relaxed);
    }
  }
  std::uint64_t longest_away_ns() const { return longest_away_ns_.load(std::memory_order_relaxed); }

  /// No reader will ask for the chunks of an operation under `tag`. They are left alone until
  /// take_back(): an MPI that cancels sends at all may crash on the second one (MPICH 5.0 with
  /// UCX).
  void cancel(std::uint64_t operation, int tag);

  /// May a chunk under this tag be taken for one that was cancelled?
  bool is_cancelled(int tag) const;

  /// At the end, when others drain what nobody asks for: what was cancelled is under way again.
  void take_back();

  /// How many chunks were sent to each rank. To be read when nothing is added
  /// any more.
  const std::vector<std::uint64_t>& sent() const { return sent_; }

 private:
  bool forget_one();
  void look();

  Channel* channel_ = nullptr;
  mutable std::mutex mutex_;
  std::deque<Chunk> chunks_;  ///< but for those that a thread looks at
  std::vector<Chunk> cancelled_;
  std::set<int> cancelled_tags_;
  std::atomic<bool> has_cancelled_{false};
  std::atomic<std::size_t> count_{0};  ///< those included
  std::vector<std::uint64_t> sent_;
  std::atomic<std::size_t> watched_{0};  ///< timed chunks that have not left
  std::atomic<std::uint64_t> looked_ns_{0};
  std::atomic<std::uint64_t> longest_away_ns_{0};
  std::uint64_t longest_backoff_ns_ = 2'000'000;
  std::atomic<std::uint64_t> backoff_ns_{longest_backoff_ns_};

  static constexpr std::uint64_t most_patient_ns = 100'000'000;
  static constexpr std::uint64_t shortest_backoff_ns = 10'000;
};

}  // namespace mpress::link
