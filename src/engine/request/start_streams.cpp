#include "engine/request/start_streams.hpp"

#include <string>
#include <utility>

#include "engine/job/job.hpp"
#include "engine/stream_order.hpp"
#include "trace/message.hpp"

namespace mpress::engine {

void StartStreams::note(MPI_Request request) {
  std::vector<ProgramStream> found;
  Asking::for_each([&](const Asked& asked) {
    if (asked.stream) found.push_back(*asked.stream);
  });
  if (found.empty()) return;
  std::lock_guard lock(mutex_);
  streams_[request] = std::move(found);
  number_.store(streams_.size(), std::memory_order_release);
}

void StartStreams::forget(MPI_Request request) {
  if (empty()) return;
  std::lock_guard lock(mutex_);
  streams_.erase(request);
  number_.store(streams_.size(), std::memory_order_release);
}

std::vector<ProgramStream> StartStreams::streams_of(MPI_Request request) {
  std::lock_guard lock(mutex_);
  const auto found = streams_.find(request);
  return found == streams_.end() ? std::vector<ProgramStream>() : found->second;
}

int StartStreams::await(Job& job, MPI_Request request) {
  if (empty()) return MPI_SUCCESS;
  for (const ProgramStream& stream : streams_of(request)) {
    const auto order = StreamOrder::behind(job, stream.handle, stream.device);
    if (order && order->await()) continue;
    trace::say("rank " + std::to_string(job.rank) +
               ": a persistent request is not started: the device refuses its stream, or that is "
               "being captured into a graph");
    mpi::calls().Comm_call_errhandler(MPI_COMM_SELF, job.device_code);
    return job.device_code;
  }
  return MPI_SUCCESS;
}

}  // namespace mpress::engine
