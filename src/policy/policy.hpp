// Whether to compress a message, by the cost model and by what messages like it became. Pure: it
// knows no MPI, no buffers.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "codec/element.hpp"
#include "codec/spec.hpp"
#include "policy/costs.hpp"
#include "policy/ratios.hpp"

namespace mpress::policy {

/// What there is to decide about.
struct Subject {
  Path path;
  Codec codec;
  ElementType type;
  std::size_t bytes;               ///< of the message
  std::shared_ptr<Ratios> ratios;  ///< of its communicator
};

enum class Verdict : std::uint8_t {
  compress,
  unknown,  ///< nobody has measured what a message costs on this path
  link,     ///< a frame of no size would not be faster
  ratio,    ///< a frame as small as those before would not be faster
};

/// Thread-safe; its counters may lag, its decisions never wait.
class Policy {
 public:
  /// `force`: everything is compressed.
  void configure(bool force, const Costs& costs);

  /// Could any message in memory of the host be compressed, whatever it becomes?
  bool may_compress_host() const;

  /// The first messages of a kind are compressed to see what they become, and then now and then
  /// one of those that do not pay, to see whether that has changed: such looks cost at most about
  /// 1 % of the time that the messages take.
  Verdict judge(const Subject& subject);

  /// What a message became, and how long that took. Times count where nobody has measured them.
  void encoded(const Subject& subject, std::size_t wire_bytes, std::uint64_t ns);
  void decoded(Place place, Codec codec, std::size_t bytes, std::uint64_t ns);

 private:
  /// Running averages of nanoseconds a byte, on the host; 0: never seen.
  struct Speed {
    std::atomic<float> encode{0};
    std::atomic<float> decode{0};
  };
  CodecSeconds seen_seconds(const Subject& subject) const;

  bool force_ = false;
  Costs costs_;
  Ratios seen_;  ///< on all communicators; a new one begins with these
  std::array<std::array<Speed, size_classes>, codec_count> speeds_;
};

}  // namespace mpress::policy
