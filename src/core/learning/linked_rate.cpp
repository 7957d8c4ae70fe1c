#include "core/learning/linked_rate.hpp"

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
constexpr std::size_t short_bytes = 256;
constexpr int times = 3;

/// Hosts have few kinds of links.
constexpr std::size_t most_measured = 8;

/// A copy that does not take so many times as long as a short one says too little.
constexpr std::uint64_t clearly_longer = 4;
constexpr int attempts = 4;  ///< at an occasion
constexpr int most_tries = 16;

/// A copy that takes so long tells enough, once and of the least bytes.
constexpr std::uint64_t long_ns = 1'000'000;

/// A queue may stand still behind a stream of the program's, which may wait for what the program
/// does next.
constexpr std::uint64_t most_ns = 250'000'000;

/// Nanoseconds of a copy, the shortest of some; 0: the device refuses, or is not done by `end_ns`.
std::uint64_t copy_ns(gpu::Queue& queue, int device, std::byte* to, const std::byte* from,
                      std::size_t bytes, std::uint64_t end_ns) {
  std::uint64_t shortest = UINT64_MAX;
  for (int i = 0; i < times && (i == 0 || shortest < long_ns); ++i) {
    const std::uint64_t begin = trace::now_ns();
    const gpu::Event event = queue.copy(to, from, bytes);
    gpu::State state = gpu::State::pending;
    await_device(device, [&] {
      state = queue.query(event);
      return state != gpu::State::pending || trace::now_ns() > end_ns;
    });
    if (state != gpu::State::done) return 0;
    shortest = std::min(shortest, trace::now_ns() - begin);
  }
  return shortest;
}

}  // namespace

void LinkedRate::open(link::Sheet* sheet) {
  of_host_.open(sheet, policy::Peer::linked);
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
  const auto ns = [&](std::size_t some) {
    return copy_ns(*queue, device, to.data(), from, some, end_ns);
  };
  double rate = 0;
  for (int i = 0; i < attempts && rate == 0; ++i) {
    const std::uint64_t least = ns(short_bytes);
    std::size_t read = least_bytes;
    std::uint64_t all = least != 0 ? ns(read) : 0;
    if (all != 0 && read < bytes && all < long_ns) {
      read = bytes;
      all = ns(read);
    }
    if (all == 0) {
      end_tries(rank);
      std::lock_guard lock(mutex_);
      given_up_.push_back({std::move(to), std::move(queue)});
      return;
    }
    if (all < clearly_longer * least) continue;
    rate =
        compute([=] { return 1e9 * static_cast<double>(read) / static_cast<double>(all - least); });
  }
  if (rate == 0) return;
  end_tries(rank);
  take(runtime, device, rate, by);
  of_host_.publish_highest(rate);
}

void LinkedRate::adopt_published(Runtime& runtime, int device) {
  const double rate = of_host_.take();
  if (rate != 0) take(runtime, device, rate, "another rank of the host");
}

void LinkedRate::take(Runtime& runtime, int device, double rate, const char* by) {
  gpu::Gpu* const gpu = gpu::gpu();
  const double speed = gpu ? gpu->speed(device) : 0;
  if (runtime.policy.links().learn_linked(rate, speed, by)) note_change();
}

}  // namespace mpress::engine
