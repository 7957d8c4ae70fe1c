#include "engine/p2p/chunk_link.hpp"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "engine/job.hpp"
#include "mpi/counted.hpp"

namespace mpress::engine {

void ChunkLink::open(std::size_t chunk_bytes, const policy::DeviceChunks& device_chunks) {
  const mpi::Calls& mpi = mpi::calls();
  // A receive must be ready for chunks that are shorter than its own rank's.
  std::uint64_t least = chunk_bytes;
  for (const policy::Peer peer : {policy::Peer::same_host, policy::Peer::other_host}) {
    least = std::min<std::uint64_t>(least, device_chunks[static_cast<std::size_t>(peer)]);
  }
  mpi.Allreduce(MPI_IN_PLACE, &least, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
  if (least == 0) return;
  if (mpi.Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &comm_) != MPI_SUCCESS) return;
  mpi.Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  int* highest = nullptr;
  int known = 0;
  mpi.Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &highest, &known);
  constexpr std::uint64_t promised = 32767;
  tags_ = (known ? static_cast<std::uint64_t>(*highest) : promised) + 1;
  chunk_bytes_ = chunk_bytes;
  least_chunk_bytes_ = static_cast<std::size_t>(least);
  device_chunks_ = device_chunks;
  int ranks = 0;
  mpi.Comm_size(comm_, &ranks);
  outbox.open(ranks);
}

void ChunkLink::cancel(Job& job, std::uint64_t message) {
  outbox.cancel(message);
  job.peer_link.cancel(message);
}

void ChunkLink::drop(Job& job, const wire::Header& header, int source) {
  if (header.peer_parcel > 0 &&
      job.peer_link.drop(source, header.peer_parcel - 1, header.chunks())) {
    return;
  }
  auto chunks = receive_chunks(job, header, source, no_sink(header, source));
  std::lock_guard lock(mutex_);
  drops_.push_back(std::move(chunks));
  dropping_.store(drops_.size(), std::memory_order_relaxed);
}

void ChunkLink::progress(Job& job) {
  outbox.progress();
  progress_drops(job);
}

void ChunkLink::progress_drops(Job& job) {
  if (dropping_.load(std::memory_order_relaxed) == 0) return;
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  std::erase_if(drops_, [&](const auto& chunks) { return chunks->advance(job); });
  dropping_.store(drops_.size(), std::memory_order_relaxed);
}

/// Receives and forgets a chunk that no receive of the program's will ask for any more.
bool ChunkLink::drop_unclaimed(Job& job) {
  const mpi::Calls& mpi = mpi::calls();
  int found = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  mpi.Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &found, &message, &status);
  if (!found) return false;
  const MPI_Count bytes = mpi::counted::bytes_of(status);
  const memory::Buffer nowhere = job.pool.take(static_cast<std::size_t>(bytes));
  if (!nowhere) mpi::fatal("no memory to drop a chunk of " + std::to_string(bytes) + " bytes");
  mpi.Mrecv(nowhere.data(), static_cast<int>(bytes), MPI_BYTE, &message, MPI_STATUS_IGNORE);
  received();
  return true;
}

/// Nothing of the program's is under way but what it truncated or cancelled.
void ChunkLink::progress_at_end(Job& job) {
  progress(job);
  const bool claimed = dropping_.load(std::memory_order_relaxed) > 0;
  if (claimed || !drop_unclaimed(job)) ::sched_yield();
}

/// A chunk may be sent before anybody asks for it, so only the number of those that were sent to
/// this rank tells that all have come.
void ChunkLink::close(Job& job) {
  if (!is_open()) return;
  const mpi::Calls& mpi = mpi::calls();
  while (outbox.is_cancelling()) progress_at_end(job);
  std::uint64_t sent_to_us = 0;
  const auto finish = [&](MPI_Request request) {
    for (int done = 0; !done;) {
      progress_at_end(job);
      mpi.Test(&request, &done, MPI_STATUS_IGNORE);
    }
  };
  MPI_Request request = MPI_REQUEST_NULL;
  mpi.Ireduce_scatter_block(outbox.sent().data(), &sent_to_us, 1, MPI_UINT64_T, MPI_SUM, comm_,
                            &request);
  finish(request);
  while (!idle() || received_.load(std::memory_order_relaxed) < sent_to_us) progress_at_end(job);
  job.peer_link.close();  // before any rank releases what it shares
  // A sender's MPI may wait for word that its chunk was received, which MPICH does not give from
  // MPI_Finalize any more.
  mpi.Ibarrier(comm_, &request);
  finish(request);
  job.peer_link.release();
  mpi.Comm_free(&comm_);
  chunk_bytes_ = 0;
}

}  // namespace mpress::engine
