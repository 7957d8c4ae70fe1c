// The links that the conformance tests run, each between three members: the one over a channel, and
// the peer and the host link with simulated GPUs.
#pragma once

#include <sched.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "gpu/loaded_gpu.hpp"
#include "link/channel/channel_link.hpp"
#include "link/host/host_link.hpp"
#include "link/peer/peer_link.hpp"
#include "links/member.hpp"
#include "unit/queues.hpp"

namespace mpress::links {

inline constexpr std::size_t chunk_bytes = 48'000;
inline constexpr std::size_t last_bytes = 1236;
inline constexpr std::uint32_t chunks = 7;
inline constexpr std::array<std::uint8_t, 16> nonce = {4, 5, 6};

inline std::size_t bytes_of(std::uint64_t chunk) {
  return chunk + 1 < chunks ? chunk_bytes : last_bytes;
}

/// A link between the ranks, and how the test writes to it and reads from it.
class End {
 public:
  explicit End(Member& member) : member(member) {}
  virtual ~End() = default;
  virtual link::Link& link() = 0;
  virtual link::Link* other() = 0;  ///< what Expected::other is
  virtual int device() const = 0;
  virtual void write(std::byte* place, const std::byte* data, std::size_t bytes) = 0;
  virtual std::vector<std::byte> read(const link::Arrived& arrived) = 0;
  virtual void close() = 0;
  virtual bool sees_ended_senders() const = 0;
  virtual bool frees_cancelled() const = 0;  ///< before the end

  Member& member;
  link::Account account;  ///< for transfers of a test's
  std::uint64_t operations = 0;
};

class ByChannel final : public End {
 public:
  /// `channel` outlives this.
  ByChannel(Member& member, link::Channel& channel) : End(member) {
    link_.open(channel, memory_, pacer_);
  }
  link::Link& link() override { return link_; }
  link::Link* other() override { return nullptr; }
  int device() const override { return gpu::host; }
  void write(std::byte* place, const std::byte* data, std::size_t bytes) override {
    std::memcpy(place, data, bytes);
  }
  std::vector<std::byte> read(const link::Arrived& arrived) override {
    return {arrived.data, arrived.data + arrived.bytes};
  }
  bool sees_ended_senders() const override { return false; }
  bool frees_cancelled() const override { return false; }
  void close() override { CHECK(shut_down(-1)); }

  link::ChannelLink& channel_link() { return link_; }

  bool shut_down(int ended) {
    Shutdown shutdown{*this, ended};
    return link_.shut_down(shutdown);
  }

 private:
  struct Shutdown final : link::ChannelLink::Shutdown {
    Shutdown(ByChannel& end, int ended) : end(end), ended(ended) {}
    void proceed() override {
      end.link().advance();
      if (!end.link_.drain_one(end.memory_.pool)) ::sched_yield();
    }
    bool is_idle() const override { return end.link_.outbox.empty(); }
    std::uint64_t pending() const override { return 0; }
    void close_others() override {}
    int find_ended() const override { return ended; }
    ByChannel& end;
    int ended;
  };
  struct Memory final : link::ChannelLink::Memory {
    memory::Buffer take(int, std::size_t bytes) override { return pool.take(bytes); }
    memory::BufferPool pool{64u << 20};
  };
  Memory memory_;
  link::Pacer pacer_;
  link::ChannelLink link_;
};

inline void choose_simulated_gpu() {
  static std::once_flag is_chosen;  // by one of the members that are threads
  std::call_once(is_chosen, [] { gpu::choose(MPRESS_SIMULATED_GPU); });
  CHECK(gpu::gpu() != nullptr);
}

/// By slots in memory that members have open.
template <class Shared>
class BySlots : public End {
 public:
  link::Link& link() override { return link_; }
  link::Link* other() override { return nullptr; }
  int device() const override { return 0; }
  bool sees_ended_senders() const override { return true; }
  bool frees_cancelled() const override { return true; }
  void close() override {
    member.barrier();
    link_.close();
    member.barrier();
    free_memory();
  }

  /// Where the members cannot close together; then free_memory().
  void close_link() { link_.close(); }
  virtual void free_memory() {
    link_.free_memory();
    queue_.reset();
  }

 protected:
  BySlots(Member& member, std::size_t limit) : End(member) {
    choose_simulated_gpu();
    const link::Address own = link_.open(nonce, member.rank, true);
    link_.set_ranks(member.of_all(link::Neighbour{member.rank, own_thread(), own}), {limit},
                    nullptr);
    queue_ = gpu::gpu()->open_queue(0);
  }

  Shared link_;
  std::unique_ptr<Queue> queue_;
};

class ByPeer final : public BySlots<link::PeerLink> {
 public:
  explicit ByPeer(Member& member, std::size_t limit = 64u << 20) : BySlots(member, limit) {}
  void write(std::byte* place, const std::byte* data, std::size_t bytes) override {
    put(*queue_, place, data, bytes);
  }
  std::vector<std::byte> read(const link::Arrived& arrived) override {
    return mpress::bytes_of(*queue_, arrived.data, arrived.bytes);
  }

  link::PeerLink& peer_link() { return link_; }
};

class ByHost final : public BySlots<link::HostLink> {
 public:
  explicit ByHost(Member& member, std::size_t limit = 64u << 20) : BySlots(member, limit) {
    room_ = static_cast<std::byte*>(gpu::gpu()->allocate(gpu::Place::device, 0, chunk_bytes));
  }
  void write(std::byte* place, const std::byte* data, std::size_t bytes) override {
    put(*queue_, room_, data, bytes);
    put(*queue_, place, room_, bytes);
  }
  /// By way of the device.
  std::vector<std::byte> read(const link::Arrived& arrived) override {
    CHECK(arrived.device == gpu::host);
    put(*queue_, room_, arrived.data, arrived.bytes);
    return mpress::bytes_of(*queue_, room_, arrived.bytes);
  }
  void free_memory() override {
    gpu::gpu()->release(gpu::Place::device, 0, room_);
    BySlots::free_memory();
  }

  link::HostLink& host_link() { return link_; }

 private:
  std::byte* room_ = nullptr;
};

/// One of each.
struct AllEnds {
  AllEnds(Member& member, link::Channel& channel, std::size_t limit)
      : channel(member, channel), peer(member, limit), host(member, limit) {}
  /// Once all that went by memory has come free.
  void close() {
    peer.member.wait([&] {
      peer.link().advance();
      host.link().advance();
      return peer.account.held() + host.account.held() == 0;
    });
    for (End* end : {all[1], all[2], all[0]}) end->close();
  }

  ByChannel channel;
  ByPeer peer;
  ByHost host;
  const std::array<End*, 3> all{&channel, &peer, &host};  ///< as link::Kind
};

}  // namespace mpress::links
