// Whether to compress a message, by the cost model and by what messages like it became. Pure: it
// knows no MPI, no buffers.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>

#include "codec/element.hpp"
#include "codec/float_environment.hpp"
#include "codec/spec.hpp"
#include "policy/costs.hpp"
#include "policy/links.hpp"
#include "policy/methods.hpp"
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

  /// Could any message in memory of the host be compressed, whatever it becomes?
  bool may_compress_host() const;

  /// The same of messages to such peers, by one codec.
  bool may_compress_host(Peer peer, Codec codec) const;

  /// The same in memory of devices.
  bool may_compress_devices() const;

  /// Do raw messages go by an own link on this path? Where MPI takes memory of devices, that is a
  /// question of which was measured to be faster.
  bool has_raw(Path path, std::size_t bytes) const {
    return !costs_.raw_is_mpis ||
           compute([&] { return is_faster_by_link(path, static_cast<double>(bytes)); });
  }

  /// Could any do so?
  bool may_have_raw() const;

  /// Do neither the profile nor the settings tell what messages in host memory cost?
  bool lacks_host_costs(Peer peer) const { return !costs_.message({Place::host, peer}); }

  /// Do neither tell what messages cost between devices that reach each other's memory?
  bool lacks_linked_costs() const { return !costs_.message({Place::device, Peer::linked}); }

  /// Such devices were seen to read each other's memory at this rate, in bytes a second, and
  /// compute at `speed` (device_codec_times(); 0: not known), from which the times follow of codecs
  /// that were never measured. The highest rate counts.
  void learn_linked(double rate, double speed);

  // What was measured at the start, in their place: the rate of links to such peers, in bytes a
  // second, and the least that encoding and decoding take in host memory, by codec, in seconds a
  // byte.
  void learn(Peer peer, double rate, Belief belief) {
    compute([&] { links_.begin(peer, rate, belief); });
  }
  void learn_codecs(const std::array<double, codec_count>& least_seconds) {
    costs_.least_host_seconds = least_seconds;
  }

  /// The shortest message to this kind of peer that compressing may be worth it for, whatever it
  /// becomes: `usual`; unless everything is compressed less where the link is slow, and more while
  /// that is little believed.
  std::size_t least_bytes(Peer peer, std::size_t usual) const;
  /// No process's is ever less, whatever it comes to know of its links.
  std::size_t least_bytes_anywhere(std::size_t usual) const;

  /// Is this message, of host memory, which goes as `is_encoded` says, to be timed? `clock`: as
  /// of LearnedLinks::judge().
  Timing judge_timing(const Subject& subject, bool is_encoded, Clock clock);

  /// A message that was timed; see LearnedLinks::observe().
  bool timed(const Subject& subject, std::size_t wire_bytes, std::uint64_t ns, bool was_encoded);
  /// Another rank of this host has learned that links to such peers have this rate.
  void heard(Peer peer, double rate) {
    compute([&] { links_.hear(peer, rate); });
  }
  /// What has been learned, in bytes a second; 0: nothing.
  double rate(Peer peer) const { return links_.rate(peer); }
  /// What rounds of raw messages cost on a path, as far as is known, else as is usual.
  LinkCosts link_costs(Path path) const;
  void not_timed(const Subject& subject, bool was_encoded) {
    links_.lose(subject.path.peer, !was_encoded);
  }

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
  bool is_faster_by_link(Path path, double bytes) const {
    return costs_.message(path) && costs_.message({Place::device, Peer::same_host}) &&
           !costs_.raw_by_mpi(path, bytes);
  }
  /// Nanoseconds a byte, on the host, as of the fastest of late; 0: never seen.
  struct Speed {
    std::atomic<float> encode{0};
    std::atomic<float> decode{0};
  };
  /// What messages and frames take on a path.
  struct Wire {
    Curve learned;  ///< of both, where nobody told
    const Curve* told_message = nullptr;
    const Curve* told_frame = nullptr;
    const Curve& message() const { return told_message ? *told_message : learned; }
    const Curve& frame() const { return told_frame ? *told_frame : learned; }
  };
  Wire wire(Path path) const;
  Verdict verdict(const Subject& subject);
  Forecast forecast_of(const Subject& subject) const;
  /// What a message costs raw, and compressed where the like of it became what was `seen`.
  struct Prices {
    double raw, compressed;
    CodecSeconds codec;
    bool pays;
  };
  Prices prices(const Subject& subject, const Wire& costs, const Ratios::Seen& seen) const;
  LinkCosts costs_of_link(Path path) const;
  bool could_pay(Path path, Codec codec, const Wire& costs, double bytes) const;
  double raw_seconds(Path path, const Wire& costs, double bytes) const;
  double raw_seconds(const Subject& subject, const Wire& costs) const;
  CodecSeconds seen_seconds(const Subject& subject) const;
  CodecSeconds least_seconds(Path path, Codec codec, double bytes) const;
  std::optional<CodecSeconds> codec_seconds(Path path, Codec codec, double bytes) const;

  bool force_ = false;
  Costs costs_;
  std::mutex learning_;
  std::array<CodecTimes, codec_count> between_devices_;  ///< once that is known
  std::atomic<bool> knows_devices_{false};
  LearnedLinks links_;
  mutable Ratios seen_;  ///< on all communicators; a new one begins with these
  std::array<std::array<Speed, size_classes>, codec_count> speeds_;
};

}  // namespace mpress::policy
