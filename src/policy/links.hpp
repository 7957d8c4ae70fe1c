// What raw messages of the host's take, where no profile tells: learned from the program's own.
//
// MPI_Init measures a rate for each kind of peer (engine/learning/probe.hpp). Later some messages
// are timed: their receiver tells how long they took from their header to their end. Timing a
// message costs something, so only so many are that all of it stays below a share of the messages'
// time.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "policy/profile.hpp"

namespace mpress::policy {

/// How a message is to be timed.
enum class Timing : std::uint8_t {
  none,
  as_it_is,  ///< it goes as it would without
  raw,       ///< it goes raw, and is timed
};

/// How far a rate is believed that no message of this run has told.
enum class Belief : std::uint8_t {
  little,  ///< only messages go by it that are long enough to be timed, until one has told
  some,    ///< the first message that would be encoded goes raw, and verifies it
  full,    ///< messages need not verify it
};

/// Nanoseconds of one that goes on.
using Clock = std::uint64_t (*)();

class LearnedLinks {
 public:
  /// Shorter messages are not timed: what does not depend on size would hide the rate.
  static constexpr std::size_t least_bytes = 128 << 10;

  /// The rate to begin with, in bytes a second; positive. Kinds of peers that have none are not
  /// learned about.
  void begin(Peer peer, double rate, Belief belief = Belief::some);

  /// Bytes a second; 0: not known.
  double rate(Peer peer) const { return of(peer).rate.load(std::memory_order_relaxed); }

  /// Bytes of a message whose half takes long enough to be worth the calls of a codec. Computed
  /// when the rate changes, as messages ask for it that are left alone.
  std::size_t worth_bytes(Peer peer) const {
    return of(peer).worth_bytes.load(std::memory_order_relaxed);
  }

  /// May short messages go by it?
  bool is_for_short(Peer peer) const {
    return of(peer).is_for_short.load(std::memory_order_relaxed);
  }

  /// Is the next message, of `bytes` bytes, to be timed? `raw_seconds` and `seconds`: what it takes
  /// raw, and as it goes, as far as is known. `clock` is looked at where that matters. Counts the
  /// message.
  Timing judge(Peer peer, std::size_t bytes, bool is_encoded, double raw_seconds, double seconds,
               Clock clock);

  /// A message of `wire_bytes` bytes on the wire took `seconds` from its header to its end, of
  /// which its codec was at work for up to `codec_seconds`; 0: it went raw. True where the rate is
  /// another one now, or the message looks as if it were: what was decided by it may not hold.
  bool observe(Peer peer, std::size_t wire_bytes, double seconds, double codec_seconds);

  /// Somebody with the same link has seen this rate.
  void hear(Peer peer, double rate);

  /// A message was timed, and nobody can tell how long it took.
  void lose(Peer peer, bool was_raw);

 private:
  /// One far-off value, as of a process that the system has stopped, counts for nothing.
  static constexpr std::size_t kept = 3;

  struct Link {
    std::atomic<double> rate{0};
    std::atomic<std::size_t> worth_bytes{0};
    std::atomic<bool> is_for_short{false};
    std::array<double, kept> seen{};  ///< the latest rates
    std::size_t next = 0;
    std::uint32_t encoded = 0;     ///< messages since the last that was timed
    std::uint32_t since_raw = 0;   ///< the same since the last that went raw to be timed
    double seconds_since_raw = 0;  ///< of messages, since the last that went raw to be timed
    std::uint64_t raw_ns = 0;      ///< when that was; at first, when the first message was judged
    bool is_doubted = false;       ///< the next message that would be encoded verifies the rate
    bool has_changed = false;      ///< so does any other: a raw one told of another rate
    bool was_asked = false;        ///< the last that was timed was to verify that
    std::uint32_t verified = 0;    ///< messages that went raw for that
    std::uint32_t lost = 0;        ///< messages that should have, in a row
  };
  Link& of(Peer peer) { return links_[static_cast<std::size_t>(peer)]; }
  const Link& of(Peer peer) const { return links_[static_cast<std::size_t>(peer)]; }
  static void set(Link& link, double rate);
  static void note(Link& link, double rate);
  static bool is_near(double rate, double other);

  std::mutex mutex_;
  std::array<Link, peer_count> links_;
};

}  // namespace mpress::policy
