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

#include "core/asked.hpp"
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
  /// It is freed.
  void forget(MPI_Request request);

  /// Before all of them are started: waits for what their streams hold, and lets other operations
  /// proceed meanwhile. An MPI error code, raised on the communicator of one whose stream the
  /// device refuses.
  int await(Job& job, std::span<const MPI_Request> requests);

  /// What is known of a request.
  struct Noted {
    std::shared_ptr<mpi::CommInfo> comm;
    std::vector<ProgramStream> streams;
  };
  /// While MPI starts `request`, its handle may change, and the old one become another's: forgets
  /// it, and hands out what was known, if anything, ...
  std::optional<Noted> take(MPI_Request request);
  /// ... which is known again under the handle that it has then.
  void put(MPI_Request request, std::optional<Noted> noted);

 private:
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
