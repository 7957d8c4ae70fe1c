// Requests that the program freed while they were active. Their frames must live on, and what
// they receive must still be decoded, so mpress completes them in the program's place.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/request_table.hpp"
#include "link/mpi.hpp"

namespace mpress::engine {

class Job;

class Orphans {
 public:
  /// Takes over a request of MPI and its entry, no longer in the table.
  void adopt(MPI_Request request, std::unique_ptr<Pending> pending);

  bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }

  /// Completes those that MPI has finished.
  void reap(Job& job);

  /// Completes all; before MPI ends.
  void drain(Job& job);

 private:
  struct Orphan {
    MPI_Request request;
    std::unique_ptr<Pending> pending;
  };
  static void finish(Job& job, Orphan& orphan, MPI_Status& status);

  std::mutex mutex_;
  std::vector<Orphan> orphans_;
  std::atomic<std::size_t> count_{0};
};

}  // namespace mpress::engine
