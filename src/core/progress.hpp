// The operations under way in this process. Whoever waits, for whatever, advances all of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "core/backoff.hpp"
#include "core/operation.hpp"

namespace mpress::engine {

/// Thread-safe. Its lock is never held while an operation advances, so a callback of the program's
/// may call in again, which advances nothing, and may throw.
class Progress {
 public:
  /// Functions of the owner's that run around every round of advance(), in its thread; null: none.
  /// They may not throw.
  struct Rounds {
    void (*begin)() = nullptr;
    void (*end)() = nullptr;
  };

  Progress() = default;
  explicit Progress(Rounds rounds) : rounds_(rounds) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Adds an operation that has started. It is kept until it is over.
  void add(std::shared_ptr<Operation> operation);

  /// Is nothing under way? Costs a load.
  bool idle() const { return count_.load(std::memory_order_relaxed) == 0; }

  /// Is something under way that proceeds while MPI blocks, if MPI lets it? Costs a load.
  bool may_run_in_hook() const { return in_hook_.load(std::memory_order_relaxed) > 0; }

  /// Lets at most `most` operations proceed, those first that have waited longest. Never waits.
  /// Returns whether one has ended.
  bool advance(std::size_t most = every);

  /// Lets this one proceed, unless a thread does so now. Never waits.
  void advance_one(const Operation& one);

  /// The same from within MPI (mpi/progress_hook.hpp), of operations that may run there. Returns
  /// whether there is one.
  bool advance_in_hook(std::size_t most);

  /// Waits until `done()`, which is asked between rounds of advance().
  template <typename Done>
  void wait_until(Done done) {
    for (Backoff backoff; !done();) {
      if (!advance()) backoff.pause();
    }
  }

  /// Before this process blocks in MPI, where nobody advances: returns once no operation needs the
  /// host. Such operations never wait for other ranks.
  void flush();

  /// Takes out the operations of one kind, which are then the caller's.
  template <typename Kind>
  std::vector<std::shared_ptr<Kind>> take_all() {
    std::vector<std::shared_ptr<Kind>> taken;
    std::lock_guard lock(mutex_);
    std::erase_if(operations_, [&](const auto& operation) {
      auto kind = std::dynamic_pointer_cast<Kind>(operation);
      if (kind) taken.push_back(std::move(kind));
      return taken.size() > 0 && taken.back() == operation;
    });
    count_.fetch_sub(taken.size(), std::memory_order_relaxed);
    for (const auto& one : taken) in_hook_.fetch_sub(one->may_run_in_hook() ? 1 : 0);
    return taken;
  }

  /// Is there a thread that advances, whatever the program does?
  bool is_threaded() const { return is_threaded_.load(std::memory_order_relaxed); }

  // For that thread (core/progress_thread.hpp).

  void set_threaded(bool threaded) { is_threaded_.store(threaded, std::memory_order_relaxed); }
  /// Counts what sleep() ends at.
  std::uint32_t changes() const { return changes_.load(std::memory_order_acquire); }
  /// Sleeps until an operation is added, or wake() is called, after changes() gave `seen`.
  void sleep(std::uint32_t seen) const { changes_.wait(seen, std::memory_order_acquire); }
  void wake() {
    changes_.fetch_add(1, std::memory_order_release);
    changes_.notify_all();
  }

  /// Is this thread in a round of advance()?
  static bool is_advancing();

  /// While it lives, this thread advances nothing, whatever it waits for.
  class Pause {
   public:
    Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
    ~Pause();

   private:
    const bool was_advancing_;
  };

  /// How many look at a time at what is under way where the call itself waits for nothing.
  static constexpr std::size_t few = 4;
  static constexpr std::size_t every = SIZE_MAX;

 private:
  class Round;
  class Taken;
  std::shared_ptr<Operation> pop(const Operation* wanted, bool& needed_host);
  void end(Operation& operation);
  void push_back(std::shared_ptr<Operation> operation, bool is_over, bool needed_host);

  const Rounds rounds_{};
  mutable std::mutex mutex_;
  std::deque<std::shared_ptr<Operation>>
      operations_;  ///< those that were advanced last are at the end
  /// Of those that a thread is advancing, and that are not in the list: how many needed the host
  /// before. One that did not does not hold up flush(), however often other threads look at it.
  std::size_t needed_now_ = 0;
  std::atomic<bool> is_threaded_{false};
  std::atomic<std::uint32_t> changes_{0};
  std::atomic<std::size_t> count_{0};    ///< those that a thread is advancing included
  std::atomic<std::size_t> in_hook_{0};  ///< the same, of those that may run in the hook
};

}  // namespace mpress::engine
