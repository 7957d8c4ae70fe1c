#include "message/chunks.hpp"

#include <sched.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "link/route.hpp"
#include "message/messaging.hpp"

namespace mpress::engine {

/// Slots of messages that go by the channel.
class Chunks::Slots final : public link::ChannelLink::Memory {
 public:
  explicit Slots(Messaging& messaging) : messaging_(messaging) {}
  memory::Buffer take(int device, std::size_t bytes) override {
    return messaging_.take_on_host(device, bytes);
  }
  memory::Buffer take_near(int device, std::size_t bytes) override {
    if (device == gpu::host || !messaging_.hands_devices_to_mpi()) return {};
    return messaging_.devices.take(device, bytes);
  }

 private:
  Messaging& messaging_;
};

Chunks::Chunks(Messaging& messaging) : messaging_(messaging), chunk_bytes_(messaging.chunk_bytes) {}

Chunks::~Chunks() = default;

std::size_t Chunks::least_chunk(std::size_t chunk_bytes,
                                const policy::DeviceChunks& device_chunks) {
  std::size_t least = chunk_bytes;
  for (const policy::Peer peer : {policy::Peer::same_host, policy::Peer::other_host}) {
    least = std::min(least, device_chunks[static_cast<std::size_t>(peer)]);
  }
  return least;
}

void Chunks::open(link::Channel& channel, std::size_t least, std::size_t chunk_bytes,
                  const policy::DeviceChunks& device_chunks) {
  slots_ = std::make_unique<Slots>(messaging_);
  messaging_.links.held_for_channel.set_limit(messaging_.config.pool_limit);
  messaging_.links.channel.open(channel, *slots_, messaging_.pacer);
  chunk_bytes_ = chunk_bytes;
  // A receive must be ready for chunks that are shorter than its own rank's.
  least_chunk_bytes_ = least;
  device_chunks_ = device_chunks;
}

bool Chunks::idle() const {
  return messaging_.links.channel.outbox.empty() && dropping_.load(std::memory_order_relaxed) == 0;
}

void Chunks::drop(const wire::Header& header, int source) {
  link::Route route(header.route);
  if (messaging_.links.of(route.kind).discard(source, route, header.chunks())) return;
  const Chunking cut = Chunking::of(header, source);
  auto chunks =
      std::make_unique<ReceivePipeline>(messaging_, cut, no_decoder(messaging_, cut), gpu::host);
  route.kind = link::Kind::channel;
  chunks->open(messaging_.links.channel, route, 0);
  std::lock_guard lock(mutex_);
  drops_.push_back(std::move(chunks));
  dropping_.fetch_add(1, std::memory_order_relaxed);
}

void Chunks::progress() {
  messaging_.links.channel.outbox.progress();
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
  explicit Shutdown(Messaging& messaging) : messaging_(messaging) {}

  void proceed() override {
    messaging_.chunks.progress();
    const bool is_dropping = pending() > 0;
    if (is_dropping || !messaging_.links.channel.drain_one(messaging_.pool)) ::sched_yield();
  }
  bool is_idle() const override { return messaging_.chunks.idle(); }
  std::uint64_t pending() const override {
    return messaging_.chunks.dropping_.load(std::memory_order_relaxed);
  }
  void close_others() override {
    for (link::DeviceLink* const one : messaging_.links.between_devices()) one->close();
  }
  int find_ended() const override { return messaging_.endpoints.find_ended(); }

 private:
  Messaging& messaging_;
};

bool Chunks::close() {
  if (!is_open()) return true;
  Shutdown shutdown(messaging_);
  const bool is_complete = messaging_.links.channel.shut_down(shutdown);
  chunk_bytes_ = 0;
  // What others may still have open, or send to, ends with the process.
  if (!is_complete) return false;
  for (link::DeviceLink* const one : messaging_.links.between_devices()) one->free_memory();
  return true;
}

/// Lets go of what the channel has sent, and drains what nobody asked for.
class Chunks::Follower final : public Operation {
 public:
  explicit Follower(Chunks& chunks) : chunks_(chunks) {}
  bool advance() override {
    chunks_.progress();
    if (!chunks_.idle()) return false;
    chunks_.is_followed_ = false;
    return chunks_.idle() || chunks_.is_followed_.exchange(true);
  }
  bool needs_host() const override { return false; }

 private:
  Chunks& chunks_;
};

void Chunks::follow() {
  if (!idle() && !is_followed_.exchange(true)) {
    messaging_.progress.add(std::make_shared<Follower>(*this));
  }
}

}  // namespace mpress::engine
