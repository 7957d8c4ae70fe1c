// Requests that the program freed while they were active. Their frames must live on, and what
// they receive must still be decoded, so mpress completes them in the program's place.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>

#include "engine/request/pending.hpp"
#include "mpi/calls.hpp"

namespace mpress::engine {

class Job;

/// Thread-safe. The lock is never held while MPI is called or a message is delivered: both may
/// call the program's error handlers, and these MPI again.
class Orphans {
 public:
  /// Takes over a request of MPI and its entry, no longer in the table.
  void adopt(MPI_Request request, std::unique_ptr<Pending> pending);

  bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }

  /// Looks at a few and completes those that MPI has finished. Each has its turn, however many
  /// there are and however long they take.
  void reap(Job& job) { look_at(job, few); }

  /// The same for all.
  void reap_all(Job& job) { look_at(job, count_.load(std::memory_order_relaxed)); }

  /// Before MPI ends: completes them, as long as another ends within a second. The rest, such as
  /// receives that nobody sends to, is handed to MPI, which does not wait for them either.
  void release(Job& job);

 private:
  struct Orphan {
    MPI_Request request = MPI_REQUEST_NULL;
    std::unique_ptr<Pending> pending;
  };
  static constexpr std::size_t few = 4;

  void look_at(Job& job, std::size_t how_many);
  bool pop(Orphan& orphan);
  void push(Orphan orphan);
  static bool ends(Job& job, Orphan& orphan);

  std::mutex mutex_;
  std::deque<Orphan> orphans_;         ///< those that were looked at last are at the end
  std::atomic<std::size_t> count_{0};  ///< those that a thread is looking at included
  std::deque<Orphan> released_;        ///< MPI may read and write their buffers to its end
};

}  // namespace mpress::engine
