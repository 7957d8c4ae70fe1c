// Where receives lie, as far as statistics tell. Where MPI takes memory of devices and gets what is
// not encoded, a receive needs to know that only once a frame has come, and the driver takes some
// 100 ns to tell. So one in so many is looked up when it is posted, and stands for those that
// follow.
#pragma once

#include <atomic>
#include <cstdint>

namespace mpress::engine {

/// Thread-safe.
class LocationSample {
 public:
  /// Is the next one to be looked up?
  bool is_due() { return calls_.fetch_add(1, std::memory_order_relaxed) % interval == 0; }

  void note(bool is_on_device) { on_device_.store(is_on_device, std::memory_order_relaxed); }
  bool last_was_on_device() const { return on_device_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t interval = 17;  ///< none that programs repeat messages in
  std::atomic<std::uint32_t> calls_{0};
  std::atomic<bool> on_device_{false};
};

}  // namespace mpress::engine
