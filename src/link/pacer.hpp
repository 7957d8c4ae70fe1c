// Paces received messages as if they had come over a slower link, to study other networks on one
// machine. Whatever it times is simulated, and the statistics say so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace mpress::link {

/// A token bucket at the receiver's completion: each rank has one incoming link, over which
/// messages travel one after the other.
class Pacer {
 public:
  /// `bytes_per_second` 0: off.
  void set_rate(double bytes_per_second) { rate_ = bytes_per_second; }
  bool active() const { return rate_ != 0; }

  /// Returns when a message of `bytes` that could have begun to travel at `begin_ns` (on the
  /// clock of trace::now_ns) would have arrived.
  void arrive(std::size_t bytes, std::uint64_t begin_ns);

 private:
  double rate_ = 0;
  std::mutex mutex_;
  std::uint64_t link_free_ns_ = 0;
};

}  // namespace mpress::link
