// Costs of messages on each path, by all that a process knows of links: a profile or settings, the
// measurement in MPI_Init, messages that were timed, reads between devices, and what other ranks of
// the host have published. Pure: the sources (core/learning) bring the numbers.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include "policy/costs.hpp"
#include "policy/methods.hpp"
#include "policy/profile.hpp"

namespace mpress::policy {

/// How a message is to be timed.
enum class Timing : std::uint8_t {
  none,
  as_it_is,  ///< it goes as it would without
  raw,       ///< it goes raw, and is timed
};

/// How much a rate counts that no message of this run has confirmed.
enum class Confidence : std::uint8_t {
  low,     ///< only messages go by it that are long enough to be timed, until one was
  medium,  ///< the first message that would be encoded goes raw, and verifies it
  full,    ///< messages need not verify it
};

/// Nanoseconds of one that goes on.
using Clock = std::uint64_t (*)();

/// Bytes of the messages that are thought of where all are.
inline constexpr double shortest_of_all = 1 << 10;
inline constexpr double longest_of_all = 1 << 30;

/// Costs of messages on one path. Lives as long as the costs do.
struct PathCosts {
  const Costs& configured;
  const Path path;
  const Curve learned;  ///< counts for messages and frames in place of the former; or empty

  explicit operator bool() const { return static_cast<bool>(message()); }
  const Curve& message() const { return learned ? learned : configured.message(path); }
  const Curve& frame() const { return learned ? learned : configured.frame(path); }

  /// Seconds of a raw message.
  double raw_seconds(double bytes) const {
    const Curve* const by_mpi = configured.raw_by_mpi(path, bytes);
    return (by_mpi ? *by_mpi : message()).at(bytes);
  }
  /// Seconds of one that becomes `wire_bytes`.
  double compressed_seconds(const CodecSeconds& codec, double wire_bytes) const {
    return configured.compressed(path, frame(), codec, wire_bytes);
  }
};

/// Thread-safe, but for configure() and learn_codecs(). costs(), codec_seconds(),
/// least_codec_seconds() and judge() are called in the scope of compute()
/// (codec/float_environment.hpp); other functions open it.
class LinkModel {
 public:
  /// Shorter messages are not timed: what does not depend on size would hide the rate.
  static constexpr std::size_t least_timed_bytes = 128 << 10;

  /// `costs`: of the profile or the settings, or what is assumed where neither has them.
  void configure(const Costs& costs) { costs_ = costs; }

  /// Did configure() bring costs of messages on this path?
  bool is_configured(Path path) const { return static_cast<bool>(costs_.message(path)); }

  // Costs of a path.

  PathCosts costs(Path path) const;
  /// Of rounds of raw messages, as far as is known, else as is usual.
  LinkCosts rounds(Path path) const;
  /// Empty where the codec's times were never measured.
  std::optional<CodecSeconds> codec_seconds(Path path, Codec codec, double bytes) const;
  /// Where they were not, what the codec takes at the least: on a device, nothing.
  CodecSeconds least_codec_seconds(Path path, Codec codec, double bytes) const;

  /// Do raw messages go by an own link on this path? Where MPI takes memory of devices, that is a
  /// question of which was measured to be faster.
  bool has_raw(Path path, std::size_t bytes) const;
  /// Could any do so?
  bool may_have_raw() const;

  /// The rate that was learned, in bytes a second; 0: none.
  double rate(Peer peer) const { return of(peer).rate.load(std::memory_order_relaxed); }
  /// The occasion on which the rate between linked devices was measured, for reports; null: it was
  /// not.
  const char* learned_by() const { return learned_by_.load(std::memory_order_relaxed); }

  /// Bytes of the shortest message in memory of the host that a codec's calls may be worth:
  /// `usual`; less where the link is slow, more while its rate has low confidence.
  std::size_t threshold(Peer peer, std::size_t usual) const;
  /// No process's is ever less, whatever it comes to know.
  static std::size_t least_threshold(std::size_t usual);

  // Measurements in MPI_Init.

  /// The rate to begin with, in bytes a second; positive. Nothing more is learned about kinds of
  /// peers that have none.
  void begin(Peer peer, double rate, Confidence confidence);
  /// The least that encoding and decoding take in host memory, by codec, in seconds a byte.
  void learn_codecs(const std::array<double, codec_count>& least_seconds) {
    costs_.least_host_seconds = least_seconds;
  }

  /// Linked devices were seen to read each other's memory at this rate, in bytes a second, and
  /// compute at `speed` (device_codec_times(); 0: not known), from which the times follow of codecs
  /// that were never measured. The highest rate counts; true where this is one. `by`: the occasion,
  /// a literal.
  bool learn_linked(double rate, double speed, const char* by);

  // Messages of the host's that are timed: their receiver reports how long they took from their
  // header to their end. Timing a message costs something, so only so many are that all of it stays
  // below a share of the messages' time.

  /// Is the next message, of `bytes` bytes, to be timed? `raw_seconds` and `seconds`: what it takes
  /// raw, and as it goes, as far as is known. `clock` is looked at where that matters. Counts the
  /// message.
  Timing judge(Peer peer, std::size_t bytes, bool is_encoded, double raw_seconds, double seconds,
               Clock clock);
  /// A message of `wire_bytes` bytes on the wire took `ns` from its header to its end, of which its
  /// codec was at work for up to `codec_seconds`; 0: it went raw. True where the rate is another
  /// one now, or the message looks as if it were: decisions by it may not hold.
  bool observe(Peer peer, std::size_t wire_bytes, std::uint64_t ns, double codec_seconds);
  /// A message was timed, and how long it took is not known.
  void lose(Peer peer, bool was_raw);
  /// Another rank of this host has published this rate.
  void adopt(Peer peer, double rate);

 private:
  /// One far-off value, as of a process that the system has stopped, counts for nothing.
  static constexpr std::size_t kept = 3;

  /// Of a kind of peer.
  struct Learned {
    std::atomic<double> rate{0};
    /// Bytes of a message whose half takes long enough to be worth the calls of a codec. Computed
    /// when the rate changes, as messages ask for it that are left alone.
    std::atomic<std::size_t> worth_bytes{0};
    std::atomic<bool> is_for_short{false};  ///< short messages may go by the rate
    std::array<double, kept> seen{};        ///< the latest rates
    std::size_t next = 0;
    std::uint32_t encoded = 0;     ///< messages since the last that was timed
    std::uint32_t since_raw = 0;   ///< the same since the last that went raw to be timed
    double seconds_since_raw = 0;  ///< of messages, since the last that went raw to be timed
    std::uint64_t raw_ns = 0;      ///< when that was; at first, when the first message was judged
    bool is_doubted = false;       ///< the next message that would be encoded verifies the rate
    bool has_changed = false;      ///< so does any other: a raw one had another rate
    bool was_asked = false;        ///< the last that was timed was to verify that
    std::uint32_t verified = 0;    ///< messages that went raw for that
    std::uint32_t lost = 0;        ///< messages that should have, in a row
  };
  Learned& of(Peer peer) { return learned_[index(peer)]; }
  const Learned& of(Peer peer) const { return learned_[index(peer)]; }
  static void set(Learned& link, double rate);
  static void note(Learned& link, double rate);
  static void start(Learned& link, double rate, Confidence confidence);
  bool is_faster_by_link(Path path, double bytes) const;

  Costs costs_;
  std::array<CodecTimes, codec_count> between_devices_;  ///< once these are known
  std::atomic<bool> knows_devices_{false};
  std::atomic<const char*> learned_by_{nullptr};
  std::mutex mutex_;
  std::array<Learned, peer_count> learned_;
};

}  // namespace mpress::policy
