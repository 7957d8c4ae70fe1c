#include "link/channel/channel_link.hpp"

#include <array>
#include <string>

#include "trace/message.hpp"
#include "trace/timeline.hpp"

namespace mpress::link {
namespace {

/// Whether it is worth waiting on at the end, where all ranks have to do their part.
class Watch {
 public:
  /// False once nothing has moved for too long: `moved` changes with every step.
  bool goes_on(const ChannelLink::Shutdown& shutdown, const std::array<std::uint64_t, 3>& moved) {
    const std::uint64_t now_ns = trace::now_ns();
    if (moved != moved_ || moved_ns_ == 0) {
      moved_ = moved;
      moved_ns_ = now_ns;
      return true;
    }
    const std::uint64_t silence_ns = now_ns - moved_ns_;
    if (silence_ns < least_silence_ns || now_ns < looked_ns_ + look_ns) return true;
    looked_ns_ = now_ns;
    const int ended = shutdown.find_ended();
    if (ended < 0 && silence_ns < longest_silence_ns) return true;
    trace::say("MPI_Finalize waits no longer for " +
               (ended < 0 ? "other ranks: nothing has moved for ten minutes"
                          : "rank " + std::to_string(ended) + ", whose process has ended"));
    return false;
  }

 private:
  /// A rank that has just done its part may have ended before that is known here.
  static constexpr std::uint64_t least_silence_ns = 2'000'000'000;
  static constexpr std::uint64_t look_ns = 100'000'000;
  /// A rank of another host that is alive may be late by as much as its program computes.
  static constexpr std::uint64_t longest_silence_ns = 600'000'000'000;

  std::array<std::uint64_t, 3> moved_{};
  std::uint64_t moved_ns_ = 0;
  std::uint64_t looked_ns_ = 0;
};

}  // namespace

void ChannelLink::open(Channel& channel, Memory& memory, Pacer& pacer) {
  channel_ = &channel;
  tags_ = channel.tags() - 1;
  memory_ = &memory;
  pacer_ = &pacer;
  outbox.open(channel);
}

bool ChannelLink::drain_one(memory::BufferPool& pool) {
  const std::optional<Channel::Found> found = channel_->find(Channel::any_tag);
  if (!found) return false;
  const memory::Buffer nowhere = pool.take(found->bytes);
  channel_->take(*found, nowhere.data(), nowhere ? found->bytes : 0);
  received();
  return true;
}

/// A block may be sent before anybody asks for it, so only the number of those that were sent to
/// this rank tells that all have come.
bool ChannelLink::shut_down(Shutdown& shutdown) {
  Watch watch;
  const auto wait_until = [&](const auto& done) {
    while (!done()) {
      shutdown.proceed();
      if (!watch.goes_on(shutdown, {received_blocks(), outbox.size(), shutdown.pending()})) {
        return false;
      }
    }
    return true;
  };
  const auto finish = [&](Channel::Pending pending) {
    gpu::State state = gpu::State::pending;
    const auto is_over = [&] {
      state = channel_->poll(pending);
      return state != gpu::State::pending;
    };
    return wait_until(is_over) && state == gpu::State::done;
  };
  is_shut_down_.store(true, std::memory_order_relaxed);
  outbox.take_back();
  std::uint64_t sent_to_us = 0;
  if (!finish(channel_->add_up(outbox.sent(), &sent_to_us))) return false;
  if (!wait_until([&] { return shutdown.is_idle() && received_blocks() >= sent_to_us; }))
    return false;
  shutdown.close_others();  // before any rank frees what it shares
  // A sender's MPI may wait for word that its block was received, which MPICH does not give from
  // MPI_Finalize any more.
  return finish(channel_->barrier());
}

}  // namespace mpress::link
