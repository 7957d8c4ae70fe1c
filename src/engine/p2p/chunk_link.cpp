#include "engine/p2p/chunk_link.hpp"

#include <sched.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/context.hpp"
#include "engine/job.hpp"
#include "link/route.hpp"

namespace mpress::engine {

std::size_t ChunkLink::least_chunk(std::size_t chunk_bytes,
                                   const policy::DeviceChunks& device_chunks) {
  std::size_t least = chunk_bytes;
  for (const policy::Peer peer : {policy::Peer::same_host, policy::Peer::other_host}) {
    least = std::min(least, device_chunks[static_cast<std::size_t>(peer)]);
  }
  return least;
}

void ChunkLink::open(const Context* world, std::size_t chunk_bytes,
                     const policy::DeviceChunks& device_chunks) {
  // A receive must be ready for chunks that are shorter than its own rank's.
  const std::uint64_t least = world ? world->lowest()[Fact::least_chunk] : 0;
  if (least == 0 || world->comm() == MPI_COMM_NULL) return;
  MpiLink::open(world->comm(), world->tags());
  chunk_bytes_ = chunk_bytes;
  least_chunk_bytes_ = static_cast<std::size_t>(least);
  device_chunks_ = device_chunks;
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
  dropping_.fetch_add(1, std::memory_order_relaxed);
}

void ChunkLink::progress(Job& job) {
  outbox.progress();
  progress_drops(job);
}

void ChunkLink::progress_drops(Job& job) {
  if (dropping_.load(std::memory_order_relaxed) == 0) return;
  std::vector<std::unique_ptr<ChunkReceive>> drops;  // no lock is held while MPI runs
  {
    std::lock_guard lock(mutex_);
    drops.swap(drops_);
  }
  std::size_t ended =
      std::erase_if(drops, [&](const auto& chunks) { return chunks->advance(job); });
  std::lock_guard lock(mutex_);
  std::move(drops.begin(), drops.end(), std::back_inserter(drops_));
  dropping_.fetch_sub(ended, std::memory_order_relaxed);
}

/// Nothing of the program's is under way but what it truncated or cancelled.
class ChunkLink::Parting final : public link::MpiLink::Parting {
 public:
  Parting(ChunkLink& link, Job& job) : link_(link), job_(job) {}

  void proceed() override {
    link_.progress(job_);
    const bool claimed = pending() > 0;
    if (claimed || !link_.drain_one(job_.pool)) ::sched_yield();
  }
  bool is_idle() const override { return link_.idle(); }
  std::uint64_t pending() const override { return link_.dropping_.load(std::memory_order_relaxed); }
  void close_others() override { job_.peer_link.close(); }
  int find_ended() const override { return job_.peer_hosts.find_ended(); }

 private:
  ChunkLink& link_;
  Job& job_;
};

bool ChunkLink::close(Job& job) {
  if (!is_open()) return true;
  Parting parting(*this, job);
  const bool is_complete = say_farewell(parting);
  chunk_bytes_ = 0;
  // What others may still have open, or send to, ends with the process.
  if (is_complete) job.peer_link.free_memory();
  return is_complete;
}

}  // namespace mpress::engine
