// Streams of the program's that each start of a persistent request waits for: those that the calls
// name (mpress_call::stream) in which the request is made.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "engine/asked.hpp"
#include "mpi/calls/calls.hpp"
#include "mpi/objects/comm_info.hpp"

namespace mpress::engine {

class Job;

/// Of a process. Thread-safe.
class StartStreams {
 public:
  /// Has no request any?
  bool empty() const { return number_.load(std::memory_order_acquire) == 0; }

  /// `request` was made on `comm` just now: it has the streams of the calls that this thread is in.
  void note(MPI_Request request, MPI_Comm comm);
  /// MPI has given it another handle.
  void move(MPI_Request from, MPI_Request to);
  /// It is freed.
  void forget(MPI_Request request);

  /// One that each start of `request` waits for, if any.
  std::optional<ProgramStream> stream_of(MPI_Request request);

  /// Before all of them are started: waits for what their streams hold, and lets other operations
  /// proceed meanwhile. An MPI error code, raised on the communicator of one whose stream the
  /// device refuses.
  int await(Job& job, std::span<const MPI_Request> requests);

 private:
  struct Noted {
    std::shared_ptr<mpi::CommInfo> comm;
    std::vector<ProgramStream> streams;
  };
  /// A stream, and the first request that has it.
  struct Awaited {
    ProgramStream stream;
    std::shared_ptr<mpi::CommInfo> comm;
  };
  std::vector<Awaited> streams_of(std::span<const MPI_Request> requests);

  std::mutex mutex_;
  std::map<MPI_Request, Noted> noted_;
  std::atomic<std::size_t> number_{0};
};

}  // namespace mpress::engine
