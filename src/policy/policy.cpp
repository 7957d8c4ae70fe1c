#include "policy/policy.hpp"

#include <algorithm>

namespace mpress::policy {
namespace {

constexpr std::uint32_t first_looks = 2;  // enough to see a ratio and a warm codec
constexpr double look_share = 0.01;       // of the time of messages
constexpr double least_interval = 100;    // messages from look to look
constexpr float newest_weight = 0.25f;

float relaxed(const std::atomic<float>& value) { return value.load(std::memory_order_relaxed); }

void average(std::atomic<float>& into, double value, bool is_first) {
  const float old = relaxed(into);
  const auto now = static_cast<float>(value);
  into.store(is_first ? now : old + newest_weight * (now - old), std::memory_order_relaxed);
}

/// What takes a codec longer is mostly the system, which gave the processor to others meanwhile: a
/// faster one counts at once, a slower one little, so that one bad look does not stop a codec.
void note_speed(std::atomic<float>& into, double seen) {
  constexpr float most_slower = 2;
  const float old = relaxed(into);
  const auto now = static_cast<float>(seen);
  const bool counts_alone = old == 0 || now <= old;
  average(into, counts_alone ? now : std::min(now, most_slower * old), counts_alone);
}

void note(Ratios::Seen& seen, double wire_per_raw) {
  // Where compression does not pay, samples are few and far between: the last one counts alone.
  const bool counts_alone = seen.samples.load(std::memory_order_relaxed) < first_looks ||
                            !seen.pays.load(std::memory_order_relaxed);
  average(seen.wire_per_raw, wire_per_raw, counts_alone);
  seen.samples.fetch_add(1, std::memory_order_relaxed);
}

/// As two H200s took for 4 to 256 MB that one brings to the other, or both add up.
double raw_seconds(const Subject& subject, const PathCosts& costs) {
  constexpr double of_kernels = 12e-6;  // beside what a message takes
  constexpr double slower = 1.18;       // than copies
  const double alone = subject.raw_share * costs.raw_seconds(static_cast<double>(subject.bytes));
  const bool by_kernels = subject.raw_by_kernels && is_linked(subject.path);
  return by_kernels ? of_kernels + slower * alone : alone;
}

}  // namespace

void Policy::configure(bool force, const Costs& costs) {
  force_ = force;
  links_.configure(costs);
}

bool Policy::may_compress_host() const {
  return may_compress({{Place::host, Peer::same_host}, {Place::host, Peer::other_host}});
}

bool Policy::may_compress_host(Peer peer, Codec codec) const {
  if (codec == Codec::none) return force_;
  return may_compress({{Place::host, peer}}, {codec == Codec::automatic ? Codec::mpc : codec});
}

bool Policy::may_compress_devices() const {
  for (std::size_t peer = 0; peer < peer_count; ++peer) {
    if (may_compress({{Place::device, static_cast<Peer>(peer)}})) return true;
  }
  return false;
}

bool Policy::may_compress(std::initializer_list<Path> paths,
                          std::initializer_list<Codec> codecs) const {
  if (force_) return true;
  return compute([&] {
    for (const Path& path : paths) {
      const PathCosts costs = links_.costs(path);
      for (double bytes = shortest_of_all; costs && bytes <= longest_of_all; bytes *= 2) {
        for (const Codec codec : codecs) {
          if (could_pay(path, codec, costs, bytes)) return true;
        }
      }
    }
    return false;
  });
}

/// Would a frame of no size be faster?
bool Policy::could_pay(Path path, Codec codec, const PathCosts& costs, double bytes) const {
  return costs.compressed_seconds(links_.least_codec_seconds(path, codec, bytes), 0) <=
         faster * costs.raw_seconds(bytes);
}

/// On the host, as far as this process has seen.
CodecSeconds Policy::seen_seconds(const Subject& subject) const {
  const Speed& seen = speeds_[static_cast<std::size_t>(subject.codec)][size_class(subject.bytes)];
  const double bytes = static_cast<double>(subject.bytes) * 1e-9;
  const double encode = relaxed(seen.encode) * bytes;
  const double decode = relaxed(seen.decode) > 0 ? relaxed(seen.decode) * bytes : encode;
  return {encode, decode, encode, decode};
}

Timing Policy::judge_timing(const Subject& subject, bool is_encoded, Clock clock) {
  const double rate = links_.rate(subject.path.peer);
  if (force_ || rate == 0 || subject.path.place != Place::host ||
      links_.is_configured(subject.path)) {
    return Timing::none;
  }
  return compute([&] {
    const double raw = static_cast<double>(subject.bytes) / rate;
    double seconds = raw;
    if (is_encoded) {
      const Ratios::Seen& seen = subject.ratios->at(subject.codec, subject.type, subject.bytes);
      const CodecSeconds codec = seen_seconds(subject);
      seconds = std::max<double>(relaxed(seen.wire_per_raw) * raw, codec.encode) + codec.decode;
    }
    return links_.judge(subject.path.peer, subject.bytes, is_encoded, raw, seconds, clock);
  });
}

double Policy::codec_seconds(const Subject& subject) const {
  return compute([&] {
    const CodecSeconds seen = seen_seconds(subject);
    return seen.encode + seen.decode;
  });
}

bool Policy::is_raw_by_costs(const Subject& subject) const {
  if (force_) return false;
  return compute([&] {
    const PathCosts costs = links_.costs(subject.path);
    return !costs ||
           !could_pay(subject.path, subject.codec, costs, static_cast<double>(subject.bytes));
  });
}

Verdict Policy::judge(const Subject& subject) {
  return force_ ? Verdict::compress : compute([&] { return verdict(subject); });
}

Verdict Policy::verdict(const Subject& subject) {
  const PathCosts costs = links_.costs(subject.path);
  if (!costs) return Verdict::unknown;
  const auto bytes = static_cast<double>(subject.bytes);
  if (!could_pay(subject.path, subject.codec, costs, bytes)) return Verdict::link;
  Ratios::Seen& own = subject.ratios->at(subject.codec, subject.type, subject.bytes);
  if (own.samples.load(std::memory_order_relaxed) == 0) {
    Ratios::Seen& others = seen_.at(subject.codec, subject.type, subject.bytes);
    if (others.samples.load(std::memory_order_relaxed) < first_looks) return Verdict::compress;
    own.wire_per_raw.store(relaxed(others.wire_per_raw), std::memory_order_relaxed);
    own.samples.store(first_looks, std::memory_order_relaxed);
  }
  if (own.samples.load(std::memory_order_relaxed) < first_looks) return Verdict::compress;
  const Prices found = prices(subject, costs, own);
  if (found.pays != own.pays.load(std::memory_order_relaxed)) {
    own.pays.store(found.pays, std::memory_order_relaxed);
  }
  if (found.pays) return Verdict::compress;
  const double interval = std::max(
      (found.codec.encode + found.codec.decode) / (look_share * found.raw), least_interval);
  const std::uint32_t skipped = own.skipped.fetch_add(1, std::memory_order_relaxed) + 1;
  if (skipped <= interval) return Verdict::ratio;
  own.skipped.store(0, std::memory_order_relaxed);
  return Verdict::compress;
}

Policy::Prices Policy::prices(const Subject& subject, const PathCosts& costs,
                              const Ratios::Seen& seen) const {
  const auto bytes = static_cast<double>(subject.bytes);
  const auto measured = links_.codec_seconds(subject.path, subject.codec, bytes);
  const CodecSeconds codec = measured ? *measured : seen_seconds(subject);
  const double raw = raw_seconds(subject, costs);
  const double compressed = costs.compressed_seconds(codec, relaxed(seen.wire_per_raw) * bytes);
  const bool paid = seen.pays.load(std::memory_order_relaxed);
  return {raw, compressed, codec, compressed < (paid ? faster : clearly_faster) * raw};
}

Policy::Forecast Policy::forecast(const Subject& subject) const {
  return compute([&] { return forecast_of(subject); });
}

Policy::Forecast Policy::forecast_of(const Subject& subject) const {
  Forecast found;
  const PathCosts costs = links_.costs(subject.path);
  Ratios& ratios = *subject.ratios;
  const Ratios::Seen& of_comm = ratios.at(subject.codec, subject.type, subject.bytes);
  const Ratios::Seen& of_all = seen_.at(subject.codec, subject.type, subject.bytes);
  const bool is_new = of_comm.samples.load(std::memory_order_relaxed) == 0;
  const Ratios::Seen& own = is_new ? of_all : of_comm;
  const bool is_seen = own.samples.load(std::memory_order_relaxed) >= first_looks;
  if (is_seen) found.wire_per_raw = relaxed(own.wire_per_raw);
  if (force_) found.verdict = Verdict::compress;
  if (!costs) return found;
  const Prices known = prices(subject, costs, own);
  found.raw_seconds = known.raw;
  // Without a codec's times the price is the wire's alone.
  if (is_seen && known.codec.encode > 0) found.compressed_seconds = known.compressed;
  if (force_) return found;
  const bool could =
      could_pay(subject.path, subject.codec, costs, static_cast<double>(subject.bytes));
  const bool pays = !is_seen || known.pays;
  found.verdict = !could ? Verdict::link : pays ? Verdict::compress : Verdict::ratio;
  return found;
}

void Policy::encoded(const Subject& subject, std::size_t wire_bytes, std::uint64_t ns) {
  if (subject.bytes == 0) return;
  compute([&] {
    const auto bytes = static_cast<double>(subject.bytes);
    const double wire_per_raw = static_cast<double>(wire_bytes) / bytes;
    note(subject.ratios->at(subject.codec, subject.type, subject.bytes), wire_per_raw);
    note(seen_.at(subject.codec, subject.type, subject.bytes), wire_per_raw);
    if (subject.path.place != Place::host) return;
    Speed& speed = speeds_[static_cast<std::size_t>(subject.codec)][size_class(subject.bytes)];
    note_speed(speed.encode, static_cast<double>(ns) / bytes);
  });
}

void Policy::decoded(Place place, Codec codec, std::size_t bytes, std::uint64_t ns) {
  if (bytes == 0 || place != Place::host) return;
  Speed& speed = speeds_[static_cast<std::size_t>(codec)][size_class(bytes)];
  compute([&] { note_speed(speed.decode, static_cast<double>(ns) / static_cast<double>(bytes)); });
}

}  // namespace mpress::policy
