// Messages whose receivers report how long they took.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include "core/learning/host_rate.hpp"
#include "policy/policy.hpp"

namespace mpress::engine {

struct Runtime;

/// One message of this process at a time. Thread-safe.
class Timings {
 public:
  explicit Timings(Runtime& runtime) : runtime_(runtime) {}

  /// From now on all ranks expect messages that are timed. `sheet`: of the host's first rank; or
  /// null.
  void open(link::Sheet* sheet);

  /// May a receive of up to so many bytes be timed?
  bool may_come(std::size_t bytes) const {
    return is_open_ && bytes >= policy::LinkModel::least_timed_bytes;
  }

  /// Teaches the model what a receiver has reported; costs next to nothing where no message is in
  /// flight.
  void collect() {
    if (is_in_flight_.load(std::memory_order_relaxed)) look();
  }

  /// Says how a message is to be timed that goes as `is_encoded` says, as far as collect() has
  /// seen. Calls no MPI.
  policy::Timing judge(const policy::Subject& subject, bool is_encoded);

  /// The message with this number will be timed; false where another one is.
  bool begin(std::uint32_t number, const policy::Subject& subject, bool is_encoded);

  /// It will not be, after all.
  void drop(std::uint32_t number);

  /// All of it has been handed over.
  void sent(std::uint32_t number, std::size_t wire_bytes);

 private:
  struct InFlight {
    std::uint32_t number;
    policy::Subject subject;
    bool is_encoded;
    std::uint64_t begin_ns;
    std::size_t wire_bytes = 0;  ///< 0: not all is handed over
  };
  std::optional<InFlight> end();
  void look();

  Runtime& runtime_;
  bool is_open_ = false;
  std::array<HostRate, policy::peer_count> of_host_;
  std::atomic<bool> is_in_flight_{false};
  std::mutex mutex_;
  std::optional<InFlight> in_flight_;
};

}  // namespace mpress::engine
