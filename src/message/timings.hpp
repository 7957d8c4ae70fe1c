// Messages whose receivers tell how long they took: what the policy learns links by.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include "link/board.hpp"
#include "policy/policy.hpp"

namespace mpress::engine {

struct Runtime;

/// One message of this process at a time. Thread-safe.
class Timings {
 public:
  explicit Timings(Runtime& runtime) : runtime_(runtime) {}

  /// From now on all ranks expect messages that are timed. `of_host`: where those of a host tell
  /// each other; null: nowhere.
  void open(link::Sheet* of_host) {
    of_host_ = of_host;
    is_open_ = true;
  }
  bool is_open() const { return is_open_; }

  /// May receives of up to so many bytes bring one?
  bool may_come(std::size_t bytes) const {
    return is_open_ && bytes >= policy::LearnedLinks::least_bytes;
  }

  /// Hands the policy what was told; costs next to nothing where no message is under way.
  void collect() {
    if (is_under_way_.load(std::memory_order_relaxed)) look();
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
  struct UnderWay {
    std::uint32_t number;
    policy::Subject subject;
    bool is_encoded;
    std::uint64_t begin_ns;
    std::size_t wire_bytes = 0;  ///< 0: not all is handed over
  };
  std::optional<UnderWay> end();
  void look();
  void hear(policy::Peer peer);
  void tell(policy::Peer peer);

  Runtime& runtime_;
  bool is_open_ = false;
  link::Sheet* of_host_ = nullptr;
  std::array<std::atomic<std::uint64_t>, policy::peer_count> heard_{};
  std::atomic<bool> is_under_way_{false};
  std::mutex mutex_;
  std::optional<UnderWay> under_way_;
};

}  // namespace mpress::engine
