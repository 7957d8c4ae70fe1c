#include "mpi/requests/start_streams.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/stream_order.hpp"
#include "mpi/job/job.hpp"
#include "trace/message.hpp"

namespace mpress::engine {

void StartStreams::note(MPI_Request request, MPI_Comm comm) {
  if (request == MPI_REQUEST_NULL) return;
  std::vector<ProgramStream> streams;
  Asking::for_each([&](const Asked& asked) {
    if (asked.stream) streams.push_back(*asked.stream);
  });
  if (streams.empty()) return forget(request);  // the handle may have been another's
  std::lock_guard lock(mutex_);
  noted_[request] = {mpi::comm_info(comm), std::move(streams)};
  number_.store(noted_.size(), std::memory_order_release);
}

void StartStreams::forget(MPI_Request request) {
  if (empty()) return;
  std::lock_guard lock(mutex_);
  noted_.erase(request);
  number_.store(noted_.size(), std::memory_order_release);
}

std::optional<StartStreams::Noted> StartStreams::take(MPI_Request request) {
  if (empty()) return std::nullopt;
  std::lock_guard lock(mutex_);
  auto noted = noted_.extract(request);
  number_.store(noted_.size(), std::memory_order_release);
  return noted ? std::optional(std::move(noted.mapped())) : std::nullopt;
}

void StartStreams::put(MPI_Request request, std::optional<Noted> noted) {
  if (!noted) return forget(request);
  std::lock_guard lock(mutex_);
  noted_[request] = *std::move(noted);
  number_.store(noted_.size(), std::memory_order_release);
}

std::vector<StartStreams::Awaited> StartStreams::streams_of(std::span<const MPI_Request> requests) {
  std::vector<Awaited> found;
  std::lock_guard lock(mutex_);
  for (const MPI_Request request : requests) {
    const auto noted = noted_.find(request);
    if (noted == noted_.end()) continue;
    for (const ProgramStream& stream : noted->second.streams) {
      const auto is_same = [&](const Awaited& other) { return other.stream == stream; };
      if (std::ranges::none_of(found, is_same)) found.push_back({stream, noted->second.comm});
    }
  }
  return found;
}

int StartStreams::await(Job& job, std::span<const MPI_Request> requests) {
  if (empty()) return MPI_SUCCESS;
  const std::vector<Awaited> streams = streams_of(requests);
  std::vector<std::shared_ptr<StreamOrder>> orders;
  for (const Awaited& one : streams) {
    orders.push_back(StreamOrder::behind(job, one.stream.handle, one.stream.device));
  }
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (orders[i] && orders[i]->await()) continue;
    trace::say("rank " + std::to_string(job.rank) +
               ": a persistent request is not started: the device refuses its stream, or that is "
               "being captured into a graph");
    if (streams[i].comm) return streams[i].comm->raise(job.device_code);
    return job.device_code;
  }
  return MPI_SUCCESS;
}

}  // namespace mpress::engine
