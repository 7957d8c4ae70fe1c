#include "engine/p2p/chunks.hpp"

#include <sched.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/job/context.hpp"
#include "engine/job/job.hpp"
#include "link/route.hpp"

namespace mpress::engine {
namespace {

/// Slots of messages that go by MPI.
class MpiSlots final : public link::ChannelLink::Memory {
 public:
  explicit MpiSlots(Job& job) : job_(job) {}
  memory::Buffer take(int device, std::size_t bytes) override {
    return job_.take_on_host(device, bytes);
  }
  memory::Buffer take_near(int device, std::size_t bytes) override {
    if (device == gpu::host || !job_.hands_devices_to_mpi()) return {};
    return job_.devices.take(device, bytes);
  }

 private:
  Job& job_;
};

}  // namespace

std::size_t Chunks::least_chunk(std::size_t chunk_bytes,
                                const policy::DeviceChunks& device_chunks) {
  std::size_t least = chunk_bytes;
  for (const policy::Peer peer : {policy::Peer::same_host, policy::Peer::other_host}) {
    least = std::min(least, device_chunks[static_cast<std::size_t>(peer)]);
  }
  return least;
}

void Chunks::open(Job& job, const Context* world, std::size_t chunk_bytes,
                  const policy::DeviceChunks& device_chunks) {
  // A receive must be ready for chunks that are shorter than its own rank's.
  const std::uint64_t least = world ? world->lowest()[Fact::least_chunk] : 0;
  if (least == 0 || world->comm() == MPI_COMM_NULL) return;
  static MpiSlots slots(job);
  job.held_for_mpi.set_limit(job.config.pool_limit);
  job.channel.open(world->comm(), world->tags());
  job.links.channel.open(job.channel, slots, job.pacer);
  runtime_.chunk_bytes = chunk_bytes;
  least_chunk_bytes_ = static_cast<std::size_t>(least);
  device_chunks_ = device_chunks;
}

bool Chunks::idle(const Job& job) const {
  return job.links.channel.outbox.empty() && dropping_.load(std::memory_order_relaxed) == 0;
}

void Chunks::cancel(Job& job, std::uint64_t message) { job.links.cancel(message); }

void Chunks::drop(Job& job, const wire::Header& header, int source) {
  link::Route route(header.route);
  if (job.links.of(route.kind).discard(source, route, header.chunks())) return;
  const Chunking cut = Chunking::of(header, source);
  auto chunks = std::make_unique<ReceivePipeline>(job, cut, no_decoder(job, cut), gpu::host);
  route.kind = link::Kind::channel;
  chunks->open(job.links.channel, route, 0);
  std::lock_guard lock(mutex_);
  drops_.push_back(std::move(chunks));
  dropping_.fetch_add(1, std::memory_order_relaxed);
}

void Chunks::progress(Job& job) {
  job.links.channel.advance();
  progress_drops();
}

void Chunks::progress_drops() {
  if (dropping_.load(std::memory_order_relaxed) == 0) return;
  std::vector<std::unique_ptr<ReceivePipeline>> drops;  // no lock is held while MPI runs
  {
    std::lock_guard lock(mutex_);
    drops.swap(drops_);
  }
  std::size_t ended = std::erase_if(drops, [&](const auto& chunks) { return chunks->advance(); });
  std::lock_guard lock(mutex_);
  std::move(drops.begin(), drops.end(), std::back_inserter(drops_));
  dropping_.fetch_sub(ended, std::memory_order_relaxed);
}

/// Nothing of the program's is under way but what it truncated or cancelled.
class Chunks::Shutdown final : public link::ChannelLink::Shutdown {
 public:
  explicit Shutdown(Job& job) : job_(job) {}

  void proceed() override {
    job_.chunks.progress(job_);
    const bool is_dropping = pending() > 0;
    if (is_dropping || !job_.links.channel.drain_one(job_.pool)) ::sched_yield();
  }
  bool is_idle() const override { return job_.chunks.idle(job_); }
  std::uint64_t pending() const override {
    return job_.chunks.dropping_.load(std::memory_order_relaxed);
  }
  void close_others() override {
    job_.links.peer.close();
    job_.links.host.close();
  }
  int find_ended() const override { return job_.endpoints.find_ended(); }

 private:
  Job& job_;
};

bool Chunks::close(Job& job) {
  if (!is_open()) return true;
  Shutdown shutdown(job);
  const bool is_complete = job.links.channel.shut_down(shutdown);
  runtime_.chunk_bytes = 0;
  // What others may still have open, or send to, ends with the process.
  if (!is_complete) return false;
  job.links.peer.free_memory();
  job.links.host.free_memory();
  return true;
}

}  // namespace mpress::engine
