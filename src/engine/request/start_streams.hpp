// Streams of the program's that each start of a persistent request waits for: those that calls
// name (mpress_call::stream) in which the request is made.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

#include "engine/asked.hpp"
#include "mpi/calls/calls.hpp"

namespace mpress::engine {

class Job;

/// Of a process. Thread-safe.
class StartStreams {
 public:
  /// Has no request any?
  bool empty() const { return number_.load(std::memory_order_acquire) == 0; }

  /// `request` was made just now: it has the streams of the calls that this thread is in.
  void note(MPI_Request request);
  /// It is freed.
  void forget(MPI_Request request);

  /// Before it is started: waits for what its streams hold, and lets other operations proceed
  /// meanwhile. An MPI error code, raised on MPI_COMM_SELF, where a device refuses that.
  int await(Job& job, MPI_Request request);

 private:
  std::vector<ProgramStream> streams_of(MPI_Request request);

  std::mutex mutex_;
  std::map<MPI_Request, std::vector<ProgramStream>> streams_;
  std::atomic<std::size_t> number_{0};
};

}  // namespace mpress::engine
