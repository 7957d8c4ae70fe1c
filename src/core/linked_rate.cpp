#include "core/linked_rate.hpp"

#include <algorithm>
#include <utility>

#include "codec/float_environment.hpp"
#include "core/changes.hpp"
#include "core/hook_rules.hpp"
#include "core/runtime.hpp"
#include "gpu/loaded_gpu.hpp"

namespace mpress::engine {
namespace {

/// Of what is shorter, the beginning of a copy is too large a part.
constexpr std::size_t least_bytes = 4 << 20;
constexpr std::size_t most_bytes = 16 << 20;
constexpr std::size_t brief = 256;
constexpr int times = 3;

/// Hosts have few kinds of links.
constexpr std::size_t most_measured = 8;

/// A copy that does not take so many times as long as a brief one tells too little.
constexpr double clearly_longer = 4;
constexpr int attempts = 4;  ///< at an occasion
constexpr int most_tries = 16;

/// A copy that takes so long tells enough, once and of the least bytes.
constexpr double long_seconds = 1e-3;

/// A queue may stand still behind a stream of the program's, which may wait for what the program
/// does next.
constexpr std::uint64_t most_ns = 250'000'000;

/// Seconds of a copy, the shortest of some; 0: the device refuses, or is not done by `end_ns`.
double copy_seconds(gpu::Queue& queue, int device, std::byte* to, const std::byte* from,
                    std::size_t bytes, std::uint64_t end_ns) {
  double shortest = 0;
  for (int i = 0; i < times && compute([&] { return shortest < long_seconds; }); ++i) {
    const std::uint64_t begin = trace::now_ns();
    const gpu::Event event = queue.copy(to, from, bytes);
    gpu::State state = gpu::State::pending;
    await_device(device, [&] {
      state = queue.query(event);
      return state != gpu::State::pending || trace::now_ns() > end_ns;
    });
    if (state != gpu::State::done) return 0;
    const std::uint64_t ns = trace::now_ns() - begin;
    compute([&] {
      const double took = static_cast<double>(ns) * 1e-9;
      shortest = i == 0 ? took : std::min(shortest, took);
    });
  }
  return shortest;
}

}  // namespace

void LinkedRate::open(link::Sheet* of_host) {
  if (of_host) of_host_ = &of_host->seen[policy::index(policy::Peer::linked)];
  is_open_ = true;
}

bool LinkedRate::begin(int rank, std::size_t bytes) {
  // MPI's progress engine waits for none of this; and who shares a processor sees copies late.
  if (!is_open_ || bytes < least_bytes || keeps_hook_rules || Backoff::is_oversubscribed()) {
    return false;
  }
  std::lock_guard lock(mutex_);
  if (!given_up_.empty()) return false;
  const auto known = std::ranges::find(measured_, rank, &Measured::rank);
  if (known != measured_.end()) return known->tries++ < most_tries;
  if (measured_.size() == most_measured) return false;
  measured_.push_back({rank, 1});
  return true;
}

/// There will be no other.
void LinkedRate::end_tries(int rank) {
  std::lock_guard lock(mutex_);
  std::ranges::find(measured_, rank, &Measured::rank)->tries = most_tries;
}

void LinkedRate::measure(Runtime& runtime, int rank, int device, const std::byte* from,
                         std::size_t bytes, const char* by) {
  if (!begin(rank, bytes)) return;
  bytes = std::min(bytes, most_bytes);
  memory::Buffer to = runtime.devices.take(device, bytes);
  QueueLease queue = runtime.devices.queue(device, gpu::Priority::first);
  if (!to || !queue) return;
  const std::uint64_t end_ns = trace::now_ns() + most_ns;
  const auto seconds = [&](std::size_t some) {
    return copy_seconds(*queue, device, to.data(), from, some, end_ns);
  };
  double rate = 0;
  for (int i = 0; i < attempts && rate == 0; ++i) {
    const double least = seconds(brief);
    std::size_t read = least_bytes;
    double all = least != 0 ? seconds(read) : 0;
    if (all != 0 && read < bytes && compute([=] { return all < long_seconds; })) {
      read = bytes;
      all = seconds(read);
    }
    if (all == 0) {
      end_tries(rank);
      std::lock_guard lock(mutex_);
      given_up_.push_back({std::move(to), std::move(queue)});
      return;
    }
    compute([&] {
      if (all >= clearly_longer * least) rate = static_cast<double>(read) / (all - least);
    });
  }
  if (rate == 0) return;
  end_tries(rank);
  take(runtime, device, rate, by);
  if (!of_host_) return;
  double known = of_host_->rate.load(std::memory_order_relaxed);
  compute([&] {
    while (rate > known &&
           !of_host_->rate.compare_exchange_weak(known, rate, std::memory_order_relaxed)) {
    }
  });
  of_host_->count.fetch_add(1, std::memory_order_release);
}

void LinkedRate::hear(Runtime& runtime, int device) {
  if (!is_open_ || !of_host_) return;
  const std::uint64_t count = of_host_->count.load(std::memory_order_acquire);
  if (heard_.load(std::memory_order_relaxed) == count) return;
  heard_.store(count, std::memory_order_relaxed);
  take(runtime, device, of_host_->rate.load(std::memory_order_relaxed), "another rank of the host");
}

void LinkedRate::take(Runtime& runtime, int device, double rate, const char* by) {
  if (compute([&] { return rate <= runtime.policy.rate(policy::Peer::linked); })) return;
  gpu::Gpu* const gpu = gpu::gpu();
  runtime.policy.learn_linked(rate, gpu ? gpu->speed(device) : 0);
  learned_by_.store(by, std::memory_order_relaxed);
  note_change();
}

}  // namespace mpress::engine
