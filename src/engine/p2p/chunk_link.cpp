#include "engine/p2p/chunk_link.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "engine/job.hpp"
#include "link/route.hpp"
#include "mpi/counted.hpp"
#include "trace/message.hpp"

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
  const link::Route route(header.route);
  if (route.kind == link::Kind::peer &&
      job.peer_link.discard(source, route.slot, header.chunks())) {
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
  // Without memory for it MPI truncates it, which is as good.
  const memory::Buffer nowhere = job.pool.take(static_cast<std::size_t>(bytes));
  mpi.Mrecv(nowhere.data(), nowhere ? static_cast<int>(bytes) : 0, MPI_BYTE, &message,
            MPI_STATUS_IGNORE);
  received();
  return true;
}

namespace {

/// What becomes of the waiting at the end, where all ranks have to do their part: a rank that ended
/// before does not.
class Farewell {
 public:
  explicit Farewell(Job& job) : job_(job) {}

  /// Lets what is under way proceed. False once there is nothing left to wait for.
  template <typename Proceed>
  bool goes_on(const std::array<std::uint64_t, 3>& moved, Proceed proceed) {
    proceed();
    const std::uint64_t now_ns = trace::now_ns();
    if (moved != moved_ || moved_ns_ == 0) {
      moved_ = moved;
      moved_ns_ = now_ns;
      return true;
    }
    const std::uint64_t silence_ns = now_ns - moved_ns_;
    if (silence_ns < patience_ns || now_ns < looked_ns_ + look_ns) return true;
    looked_ns_ = now_ns;
    const int ended = job_.peer_hosts.find_ended();
    if (ended < 0 && silence_ns < longest_silence_ns) return true;
    trace::say("rank " + std::to_string(job_.rank) + ": MPI_Finalize waits no longer for " +
               (ended < 0 ? "other ranks: nothing has moved for ten minutes"
                          : "rank " + std::to_string(ended) + ", whose process has ended"));
    return false;
  }

 private:
  /// Whoever has just said farewell may have ended before that is known here.
  static constexpr std::uint64_t patience_ns = 2'000'000'000;
  static constexpr std::uint64_t look_ns = 100'000'000;
  /// A rank of another host that is alive may be late by as much as its program computes.
  static constexpr std::uint64_t longest_silence_ns = 600'000'000'000;

  Job& job_;
  std::array<std::uint64_t, 3> moved_{};
  std::uint64_t moved_ns_ = 0;
  std::uint64_t looked_ns_ = 0;
};

}  // namespace

/// Nothing of the program's is under way but what it truncated or cancelled.
void ChunkLink::progress_at_end(Job& job) {
  progress(job);
  const bool claimed = dropping_.load(std::memory_order_relaxed) > 0;
  if (claimed || !drop_unclaimed(job)) ::sched_yield();
}

void ChunkLink::close(Job& job) {
  if (!is_open()) return;
  const bool is_complete = say_farewell(job);
  chunk_bytes_ = 0;
  // What others may still have open, or send to, ends with the process.
  if (!is_complete) return;
  job.peer_link.free_memory();
  mpi::calls().Comm_free(&comm_);
}

/// A chunk may be sent before anybody asks for it, so only the number of those that were sent to
/// this rank tells that all have come. False where some rank does not take part.
bool ChunkLink::say_farewell(Job& job) {
  const mpi::Calls& mpi = mpi::calls();
  Farewell farewell(job);
  const auto wait_until = [&](const auto& done) {
    while (!done()) {
      const std::array moved{received_.load(std::memory_order_relaxed),
                             std::uint64_t{outbox.size()},
                             std::uint64_t{dropping_.load(std::memory_order_relaxed)}};
      if (!farewell.goes_on(moved, [&] { progress_at_end(job); })) return false;
    }
    return true;
  };
  MPI_Request request = MPI_REQUEST_NULL;
  const auto finish = [&](int code) {
    int done = 0;
    return code == MPI_SUCCESS && wait_until([&] {
             code = mpi.Test(&request, &done, MPI_STATUS_IGNORE);
             return done != 0 || code != MPI_SUCCESS;
           }) &&
           code == MPI_SUCCESS;
  };
  if (!wait_until([&] { return !outbox.is_cancelling(); })) return false;
  std::uint64_t sent_to_us = 0;
  if (!finish(mpi.Ireduce_scatter_block(outbox.sent().data(), &sent_to_us, 1, MPI_UINT64_T, MPI_SUM,
                                        comm_, &request))) {
    return false;
  }
  const auto is_all_there = [&] {
    return idle() && received_.load(std::memory_order_relaxed) >= sent_to_us;
  };
  if (!wait_until(is_all_there)) return false;
  job.peer_link.close();  // before any rank releases what it shares
  // A sender's MPI may wait for word that its chunk was received, which MPICH does not give from
  // MPI_Finalize any more.
  return finish(mpi.Ibarrier(comm_, &request));
}

}  // namespace mpress::engine
