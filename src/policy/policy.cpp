#include "policy/policy.hpp"

#include <algorithm>
#include <optional>

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

constexpr std::size_t least_worth = 4096;

/// A round of a collective call takes at least this long, and, where nothing was measured, such
/// bytes a second pass by MPI: as on machines of these years.
constexpr LinkCosts usual_by_mpi(Path path) {
  if (path.peer == Peer::other_host) {
    // 4 hosts at 1 Gbit/s, by TCP: all at once took as long for 0.1 MB a pair, 1.07 times as long
    // for 1 MB, and 1.3 for 4.
    return {.round_seconds = 30e-6, .seconds_a_byte = 1 / 10e9, .crowding = 1.1};
  }
  if (path.place == Place::host) return {.round_seconds = 3e-6, .seconds_a_byte = 1 / 8e9};
  // 4 ranks on 2 H100s by MPICH over TCP: from 1 to 2 MB a pair on, on the wire.
  return {.round_seconds = 30e-6, .seconds_a_byte = 1 / 8e9, .crowding = 1.1};
}

constexpr LinkCosts usual_costs(Path path) {
  const link::Attributes* const link = own_link(path);
  if (!link) return usual_by_mpi(path);
  return {.round_seconds = link->rounds.seconds,
          .seconds_a_byte = 1 / link->rounds.rate,
          .crowding = link->rounds.crowding,
          .is_shared = link->is_through_host,
          .partner_share = link->rounds.partner_share,
          .passing_on = link->rounds.passing_on};
}

/// Bytes of the messages that are thought of where all are.
constexpr double shortest = 1 << 10;
constexpr double longest = 1 << 30;

}  // namespace

void Policy::configure(bool force, const Costs& costs) {
  force_ = force;
  costs_ = costs;
}

bool Policy::may_compress_host() const {
  return may_compress({{Place::host, Peer::same_host}, {Place::host, Peer::other_host}});
}

bool Policy::may_compress_host(Peer peer, Codec codec) const {
  return may_compress({{Place::host, peer}}, {codec});
}

bool Policy::may_compress_devices() const {
  for (std::size_t peer = 0; peer < peer_count; ++peer) {
    if (may_compress({{Place::device, static_cast<Peer>(peer)}})) return true;
  }
  return false;
}

bool Policy::may_have_raw() const {
  if (!costs_.raw_is_mpis) return true;
  return compute([&] {
    for (const link::Attributes& link : link::between_devices) {
      for (double bytes = shortest; bytes <= longest; bytes *= 2) {
        if (is_faster_by_link({Place::device, peer_by(link.kind)}, bytes)) return true;
      }
    }
    return false;
  });
}

bool Policy::may_compress(std::initializer_list<Path> paths,
                          std::initializer_list<Codec> codecs) const {
  if (force_) return true;
  return compute([&] {
    for (const Path& path : paths) {
      const Wire costs = wire(path);
      for (double bytes = shortest; costs.message() && bytes <= longest; bytes *= 2) {
        for (const Codec codec : codecs) {
          if (could_pay(path, codec, costs, bytes)) return true;
        }
      }
    }
    return false;
  });
}

/// Would a frame of no size be faster?
bool Policy::could_pay(Path path, Codec codec, const Wire& costs, double bytes) const {
  const CodecSeconds least = least_seconds(path, codec, bytes);
  return costs_.compressed(path, costs.frame(), least, 0) <=
         faster * raw_seconds(path, costs, bytes);
}

/// What a codec takes, where that was measured, and else at the least: on a device, nothing.
CodecSeconds Policy::least_seconds(Path path, Codec codec, double bytes) const {
  if (const auto measured = codec_seconds(path, codec, bytes)) return *measured;
  if (path.place == Place::device) return {};
  const double seconds = costs_.least_host_seconds[static_cast<std::size_t>(codec)] * bytes;
  return {seconds, 0, seconds, 0};
}

/// Empty where they were never measured.
std::optional<CodecSeconds> Policy::codec_seconds(Path path, Codec codec, double bytes) const {
  const auto index = static_cast<std::size_t>(codec);
  if (!is_linked(path) || !costs_.assumed_codecs[index] ||
      !knows_devices_.load(std::memory_order_acquire)) {
    return costs_.codec_seconds(path, codec, bytes);
  }
  return costs_.codec_seconds(path, between_devices_[index], bytes);
}

void Policy::learn_linked(double rate, double speed) {
  std::lock_guard lock(learning_);
  compute([&] {
    if (rate <= links_.rate(Peer::linked)) return;
    if (speed > 0 && !knows_devices_.load(std::memory_order_relaxed)) {
      between_devices_ = device_codec_times(speed);
      knows_devices_.store(true, std::memory_order_release);
    }
    links_.begin(Peer::linked, rate, Belief::full);
  });
}

/// On the host, as far as this process has seen.
CodecSeconds Policy::seen_seconds(const Subject& subject) const {
  const Speed& seen = speeds_[static_cast<std::size_t>(subject.codec)][size_class(subject.bytes)];
  const double bytes = static_cast<double>(subject.bytes) * 1e-9;
  const double encode = relaxed(seen.encode) * bytes;
  const double decode = relaxed(seen.decode) > 0 ? relaxed(seen.decode) * bytes : encode;
  return {encode, decode, encode, decode};
}

Policy::Wire Policy::wire(Path path) const {
  const Curve& told = costs_.message(path);
  const double rate = links_.rate(path.peer);
  const bool is_on_device = path.place == Place::device;
  const bool is_assumed = is_on_device && costs_.assumed[index(path.peer)];
  const bool is_told = told || (is_on_device && !is_assumed);  // even that nobody knows
  if (rate == 0 || (is_told && !is_assumed)) return {{}, &told, &costs_.frame(path)};
  // A link between GPUs tells its rate alone, and is fast enough for what else a message takes to
  // count.
  const link::Attributes* const link = own_link(path);
  Wire learned{Curve::line(link ? link->message_seconds : 0, rate)};
  constexpr double typical = 1 << 20;
  const bool is_slower = told && told.at(typical) >= learned.learned.at(typical);
  return is_slower ? Wire{{}, &told, &costs_.frame(path)} : learned;
}

double Policy::raw_seconds(Path path, const Wire& costs, double bytes) const {
  const Curve* const by_mpi = costs_.raw_by_mpi(path, bytes);
  return (by_mpi ? *by_mpi : costs.message()).at(bytes);
}

/// As two H200s took for 4 to 256 MB that one brings to the other, or both add up.
double Policy::raw_seconds(const Subject& subject, const Wire& costs) const {
  constexpr double of_kernels = 12e-6;  // beside what a message takes
  constexpr double slower = 1.18;       // than copies
  const double alone =
      subject.raw_share * raw_seconds(subject.path, costs, static_cast<double>(subject.bytes));
  const bool by_kernels = subject.raw_by_kernels && is_linked(subject.path);
  return by_kernels ? of_kernels + slower * alone : alone;
}

LinkCosts Policy::link_costs(Path path) const {
  return compute([&] { return costs_of_link(path); });
}

LinkCosts Policy::costs_of_link(Path path) const {
  constexpr double brief = 64 << 10;
  constexpr double long_one = 4 << 20;
  LinkCosts costs = usual_costs(path);
  const Wire known = wire(path);
  if (!known.message()) return costs;
  const double at_brief = known.message().at(brief);
  costs.seconds_a_byte = (known.message().at(long_one) - at_brief) / (long_one - brief);
  costs.round_seconds = std::max(costs.round_seconds, at_brief - brief * costs.seconds_a_byte);
  if (costs_.crowding(path) > 0) costs.crowding = costs_.crowding(path);
  return costs;
}

std::size_t Policy::least_bytes(Peer peer, std::size_t usual) const {
  const double rate = links_.rate(peer);
  // What is forced to be compressed is so from the same size on everywhere.
  if (rate == 0 || force_) return usual;
  if (!links_.is_for_short(peer)) return std::max(usual, LearnedLinks::least_bytes);
  return std::clamp(links_.worth_bytes(peer), least_bytes_anywhere(usual), usual);
}

std::size_t Policy::least_bytes_anywhere(std::size_t usual) const {
  return force_ ? usual : std::min(least_worth, usual);
}

Timing Policy::judge_timing(const Subject& subject, bool is_encoded, Clock clock) {
  const double rate = links_.rate(subject.path.peer);
  if (force_ || rate == 0 || subject.path.place != Place::host || costs_.message(subject.path)) {
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

bool Policy::timed(const Subject& subject, std::size_t wire_bytes, std::uint64_t ns,
                   bool was_encoded) {
  return compute([&] {
    const CodecSeconds codec = was_encoded ? seen_seconds(subject) : CodecSeconds{};
    const double seconds = static_cast<double>(ns) * 1e-9;
    return links_.observe(subject.path.peer, wire_bytes, seconds, codec.encode + codec.decode);
  });
}

bool Policy::is_raw_by_costs(const Subject& subject) const {
  if (force_) return false;
  return compute([&] {
    const Wire costs = wire(subject.path);
    return !costs.message() ||
           !could_pay(subject.path, subject.codec, costs, static_cast<double>(subject.bytes));
  });
}

Verdict Policy::judge(const Subject& subject) {
  return force_ ? Verdict::compress : compute([&] { return verdict(subject); });
}

Verdict Policy::verdict(const Subject& subject) {
  const Wire costs = wire(subject.path);
  if (!costs.message()) return Verdict::unknown;
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

Policy::Prices Policy::prices(const Subject& subject, const Wire& costs,
                              const Ratios::Seen& seen) const {
  const auto bytes = static_cast<double>(subject.bytes);
  const std::optional<CodecSeconds> measured = codec_seconds(subject.path, subject.codec, bytes);
  const CodecSeconds codec = measured ? *measured : seen_seconds(subject);
  const double raw = raw_seconds(subject, costs);
  const double compressed =
      costs_.compressed(subject.path, costs.frame(), codec, relaxed(seen.wire_per_raw) * bytes);
  const bool paid = seen.pays.load(std::memory_order_relaxed);
  return {raw, compressed, codec, compressed < (paid ? faster : clearly_faster) * raw};
}

Policy::Forecast Policy::forecast(const Subject& subject) const {
  return compute([&] { return forecast_of(subject); });
}

Policy::Forecast Policy::forecast_of(const Subject& subject) const {
  Forecast found;
  const Wire costs = wire(subject.path);
  Ratios& ratios = *subject.ratios;
  const Ratios::Seen& of_comm = ratios.at(subject.codec, subject.type, subject.bytes);
  const Ratios::Seen& of_all = seen_.at(subject.codec, subject.type, subject.bytes);
  const bool is_new = of_comm.samples.load(std::memory_order_relaxed) == 0;
  const Ratios::Seen& own = is_new ? of_all : of_comm;
  const bool is_seen = own.samples.load(std::memory_order_relaxed) >= first_looks;
  if (is_seen) found.wire_per_raw = relaxed(own.wire_per_raw);
  if (force_) found.verdict = Verdict::compress;
  if (!costs.message()) return found;
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
