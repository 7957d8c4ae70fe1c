// Whether to compress a message, by the cost model and by what messages like it became. Pure: it
// knows no MPI, no buffers.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>

#include "codec/element.hpp"
#include "codec/float_environment.hpp"
#include "codec/spec.hpp"
#include "policy/costs.hpp"
#include "policy/link_model.hpp"
#include "policy/ratios.hpp"

namespace mpress::policy {

/// What there is to decide about.
struct Subject {
  Path path;
  Codec codec;
  ElementType type;
  std::size_t bytes;               ///< of the message
  std::shared_ptr<Ratios> ratios;  ///< of its communicator
  /// What it takes raw, of what one takes by itself, where beside others a payload does not.
  double raw_share = 1;
  /// Raw, kernels of all members of a collective call would bring it, across a link between
  /// devices.
  bool raw_by_kernels = false;
};

/// By host memory that GPUs have pinned, where each has several others' blocks on their way both
/// ways at once, or what is added up: raw ones go in windows (policy/chunks), payloads of sums
/// alone do. Four H100s exchanged 64 MB a pair at 33 GB/s raw, and at 15 GB/s of payload.
inline constexpr double raw_share_in_windows = 0.55;

enum class Verdict : std::uint8_t {
  compress,
  unknown,  ///< nobody has measured what a message costs on this path
  link,     ///< a frame of no size would not be faster
  ratio,    ///< a frame as small as those before would not be faster
};

/// Thread-safe; its counters may lag, its decisions never wait. Its arithmetic does not see the
/// modes and traps of the calling thread, nor leave flags there (codec/float_environment.hpp).
class Policy {
 public:
  /// `force`: everything is compressed.
  void configure(bool force, const Costs& costs);

  LinkModel& links() { return links_; }
  const LinkModel& links() const { return links_; }

  /// Could any message in memory of the host be compressed, whatever it becomes?
  bool may_compress_host() const;

  /// Could any to such peers, by this codec? By none where everything is forced.
  bool may_compress_host(Peer peer, Codec codec) const;

  /// Could any message in memory of devices be compressed?
  bool may_compress_devices() const;

  /// Bytes of the shortest message to this kind of peer that compressing may be worth it for,
  /// whatever it becomes; where everything is compressed `usual`, whatever the link.
  std::size_t least_bytes(Peer peer, std::size_t usual) const {
    return force_ ? usual : links_.threshold(peer, usual);
  }
  /// No process's is ever less, whatever it comes to know of its links.
  std::size_t least_bytes_anywhere(std::size_t usual) const {
    return force_ ? usual : LinkModel::least_threshold(usual);
  }

  /// Is this message, of host memory, which goes as `is_encoded` says, to be timed? `clock`: as
  /// of LinkModel::judge().
  Timing judge_timing(const Subject& subject, bool is_encoded, Clock clock);

  /// Seconds for which the codec would be at work on a message on the host, at both ends, as far as
  /// this process has seen; 0: it has not.
  double codec_seconds(const Subject& subject) const;

  /// The first messages of a kind are compressed to see what they become, and then now and then
  /// one of those that do not pay, to see whether that has changed: such looks cost at most about
  /// 1 % of the time that the messages take.
  Verdict judge(const Subject& subject);

  /// Is it raw whatever messages become, as its link is too fast, or its costs were never
  /// measured?
  /// Nothing is learned by the question.
  bool is_raw_by_costs(const Subject& subject) const;

  /// What judge() goes by, as far as it is known; nothing is learned by the question.
  struct Forecast {
    Verdict verdict = Verdict::unknown;
    double raw_seconds = 0;         ///< 0: nobody knows what messages cost on this path
    double compressed_seconds = 0;  ///< 0: nor what the like of it becomes, or takes
    double wire_per_raw = 0;        ///< 0: nothing like it was encoded yet
  };
  Forecast forecast(const Subject& subject) const;

  /// What a message became, and how long that took. Times count where nobody has measured them.
  void encoded(const Subject& subject, std::size_t wire_bytes, std::uint64_t ns);
  void decoded(Place place, Codec codec, std::size_t bytes, std::uint64_t ns);

 private:
  bool may_compress(std::initializer_list<Path> paths,
                    std::initializer_list<Codec> codecs = {Codec::mpc, Codec::zfp,
                                                           Codec::szp}) const;
  /// Nanoseconds a byte, on the host, as of the fastest of late; 0: never seen.
  struct Speed {
    std::atomic<float> encode{0};
    std::atomic<float> decode{0};
  };
  Verdict verdict(const Subject& subject);
  Forecast forecast_of(const Subject& subject) const;
  /// What a message costs raw, and compressed where the like of it became what was `seen`.
  struct Prices {
    double raw, compressed;
    CodecSeconds codec;
    bool pays;
  };
  Prices prices(const Subject& subject, const PathCosts& costs, const Ratios::Seen& seen) const;
  bool could_pay(Path path, Codec codec, const PathCosts& costs, double bytes) const;
  CodecSeconds seen_seconds(const Subject& subject) const;

  bool force_ = false;
  LinkModel links_;
  mutable Ratios seen_;  ///< on all communicators; a new one begins with these
  std::array<std::array<Speed, size_classes>, codec_count> speeds_;
};

}  // namespace mpress::policy
