#include "policy/link_model.hpp"

#include <algorithm>
#include <utility>

#include "codec/float_environment.hpp"

namespace mpress::policy {
namespace {

/// Of the time that messages take, what timing them may add.
constexpr double timing_share = 0.01;

/// Of the time that passes, for messages that go raw anyway, one in so many at most: where a link
/// has become slow, they take longer than its rate says.
constexpr double passing_share = 0.002;
constexpr std::uint32_t passing_interval = 8;

/// Of messages' time, for those that verify a rate that is doubted, after the first few.
constexpr double doubted_share = 0.05;
constexpr std::uint32_t free_verifications = 6;

/// Encoded messages are timed one in so many: that adds one short message back.
constexpr std::uint32_t encoded_interval = 16;

/// A message whose half takes less than this to travel is not worth the calls of a codec.
constexpr double worth_seconds = 20e-6;

/// Sending a raw message in chunks takes more than in one piece: a copy, and the chunks.
double extra_seconds(std::size_t bytes) { return 20e-6 + 0.5e-9 * static_cast<double>(bytes); }

/// Rates of which one is more than so many times the other differ.
constexpr double differ = 1.5;

/// Messages that were to verify a rate, and were lost, in a row.
constexpr std::uint32_t most_lost = 4;

bool is_near(double rate, double other) { return rate <= differ * other && other <= differ * rate; }

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

constexpr LinkCosts usual_rounds(Path path) {
  const link::Attributes* const link = own_link(path);
  if (!link) return usual_by_mpi(path);
  return {.round_seconds = link->rounds.seconds,
          .seconds_a_byte = 1 / link->rounds.rate,
          .crowding = link->rounds.crowding,
          .is_shared = link->is_through_host,
          .partner_share = link->rounds.partner_share,
          .passing_on = link->rounds.passing_on};
}

}  // namespace

PathCosts LinkModel::costs(Path path) const {
  const Curve& configured = costs_.message(path);
  const double learned_rate = rate(path.peer);
  const bool is_on_device = path.place == Place::device;
  const bool is_assumed = is_on_device && costs_.assumed[index(path.peer)];
  const bool is_known = configured || is_on_device;  // or known to be unknown
  if (learned_rate == 0 || (is_known && !is_assumed)) return {costs_, path, {}};
  // Of a link between GPUs the rate alone is learned; it is fast enough for what else a message
  // takes to count.
  const link::Attributes* const own = own_link(path);
  Curve learned = Curve::line(own ? own->message_seconds : 0, learned_rate);
  constexpr double typical = 1 << 20;
  const bool is_slower = configured && configured.at(typical) >= learned.at(typical);
  return {costs_, path, is_slower ? Curve() : std::move(learned)};
}

LinkCosts LinkModel::rounds(Path path) const {
  constexpr double short_one = 64 << 10;
  constexpr double long_one = 4 << 20;
  return compute([&] {
    LinkCosts found = usual_rounds(path);
    const PathCosts known = costs(path);
    if (!known) return found;
    const double at_short = known.message().at(short_one);
    found.seconds_a_byte = (known.message().at(long_one) - at_short) / (long_one - short_one);
    found.round_seconds =
        std::max(found.round_seconds, at_short - short_one * found.seconds_a_byte);
    if (costs_.crowding(path) > 0) found.crowding = costs_.crowding(path);
    return found;
  });
}

std::optional<CodecSeconds> LinkModel::codec_seconds(Path path, Codec codec, double bytes) const {
  const auto index = static_cast<std::size_t>(codec);
  if (!is_linked(path) || !costs_.assumed_codecs[index] ||
      !knows_devices_.load(std::memory_order_acquire)) {
    return costs_.codec_seconds(path, codec, bytes);
  }
  return costs_.codec_seconds(path, between_devices_[index], bytes);
}

CodecSeconds LinkModel::least_codec_seconds(Path path, Codec codec, double bytes) const {
  if (const auto measured = codec_seconds(path, codec, bytes)) return *measured;
  if (path.place == Place::device) return {};
  const double seconds = costs_.least_host_seconds[static_cast<std::size_t>(codec)] * bytes;
  return {seconds, 0, seconds, 0};
}

bool LinkModel::is_faster_by_link(Path path, double bytes) const {
  return is_configured(path) && is_configured({Place::device, Peer::same_host}) &&
         !costs_.raw_by_mpi(path, bytes);
}

bool LinkModel::has_raw(Path path, std::size_t bytes) const {
  return !costs_.raw_is_mpis ||
         compute([&] { return is_faster_by_link(path, static_cast<double>(bytes)); });
}

bool LinkModel::may_have_raw() const {
  if (!costs_.raw_is_mpis) return true;
  return compute([&] {
    for (const link::Attributes& link : link::between_devices) {
      for (double bytes = shortest_of_all; bytes <= longest_of_all; bytes *= 2) {
        if (is_faster_by_link({Place::device, peer_by(link.kind)}, bytes)) return true;
      }
    }
    return false;
  });
}

std::size_t LinkModel::threshold(Peer peer, std::size_t usual) const {
  const Learned& known = of(peer);
  if (rate(peer) == 0) return usual;
  if (!known.is_for_short.load(std::memory_order_relaxed))
    return std::max(usual, least_timed_bytes);
  return std::clamp(known.worth_bytes.load(std::memory_order_relaxed), least_threshold(usual),
                    usual);
}

std::size_t LinkModel::least_threshold(std::size_t usual) { return std::min(least_worth, usual); }

void LinkModel::set(Learned& link, double rate) {
  link.worth_bytes.store(static_cast<std::size_t>(worth_seconds * rate), std::memory_order_relaxed);
  link.rate.store(rate, std::memory_order_relaxed);
}

void LinkModel::note(Learned& link, double rate) {
  link.seen[link.next++ % kept] = rate;
  std::array<double, kept> sorted = link.seen;
  std::sort(sorted.begin(), sorted.end());
  set(link, sorted[kept / 2]);
}

void LinkModel::start(Learned& link, double rate, Confidence confidence) {
  link.seen.fill(rate);
  link.is_doubted = confidence != Confidence::full;
  link.is_for_short.store(confidence != Confidence::low, std::memory_order_relaxed);
  set(link, rate);
}

void LinkModel::begin(Peer peer, double rate, Confidence confidence) {
  std::lock_guard lock(mutex_);
  compute([&] { start(of(peer), rate, confidence); });
}

bool LinkModel::learn_linked(double rate, double speed, const char* by) {
  std::lock_guard lock(mutex_);
  return compute([&] {
    if (rate <= this->rate(Peer::linked)) return false;
    if (speed > 0 && !knows_devices_.load(std::memory_order_relaxed)) {
      between_devices_ = device_codec_times(speed);
      knows_devices_.store(true, std::memory_order_release);
    }
    learned_by_.store(by, std::memory_order_relaxed);
    start(of(Peer::linked), rate, Confidence::full);
    return true;
  });
}

Timing LinkModel::judge(Peer peer, std::size_t bytes, bool is_encoded, double raw_seconds,
                        double seconds, Clock clock) {
  if (bytes < least_timed_bytes || rate(peer) == 0) return Timing::none;
  std::lock_guard lock(mutex_);
  Learned& link = of(peer);
  link.seconds_since_raw += seconds;
  if (link.raw_ns == 0) link.raw_ns = clock();
  const double extra =
      extra_seconds(bytes) + (is_encoded ? std::max(raw_seconds - seconds, 0.) : 0);
  // Verifying a rate that is doubted may cost more, but not without end.
  const bool is_asked =
      link.is_doubted && is_encoded &&
      (link.verified < free_verifications || extra <= doubted_share * link.seconds_since_raw);
  if (is_asked) ++link.verified;
  const auto has_passed = [&] {
    return extra <= passing_share * 1e-9 * static_cast<double>(clock() - link.raw_ns);
  };
  const bool is_due = !is_encoded && ++link.since_raw >= passing_interval && has_passed();
  if (is_asked || link.has_changed || is_due || extra <= timing_share * link.seconds_since_raw) {
    link.is_doubted = false;
    link.was_asked = std::exchange(link.has_changed, false);
    link.seconds_since_raw = 0;
    link.since_raw = 0;
    link.raw_ns = clock();
    link.encoded = 0;
    return Timing::raw;
  }
  if (!is_encoded || ++link.encoded < encoded_interval) return Timing::none;
  link.encoded = 0;
  return Timing::as_it_is;
}

bool LinkModel::observe(Peer peer, std::size_t wire_bytes, std::uint64_t ns, double codec_seconds) {
  if (wire_bytes == 0 || ns == 0 || rate(peer) == 0) return false;
  std::lock_guard lock(mutex_);
  Learned& link = of(peer);
  const bool was_for_short = link.is_for_short.exchange(true, std::memory_order_relaxed);
  return compute([&] {
    const double before = rate(peer);
    const auto bytes = static_cast<double>(wire_bytes);
    const double seconds = static_cast<double>(ns) * 1e-9;
    const double least = bytes / seconds;
    // The link was at work for some of the time, between what the codec left and all of it.
    const double left = seconds - codec_seconds;
    const bool is_raw = codec_seconds == 0;
    const bool is_faster = least > before;
    if (is_raw || is_faster) {
      note(link, least);
      link.is_doubted = !is_near(least, rate(peer));
    } else if (left > 0 && bytes / left < before) {
      note(link, bytes / left);
    }
    bool has_changed = !was_for_short || !is_near(before, rate(peer));
    if (is_raw) {
      link.lost = 0;
      // Asked once, and not again because of the answer: links may be noisy.
      link.has_changed = link.is_doubted && !std::exchange(link.was_asked, false);
      has_changed = has_changed || link.has_changed;
    }
    return has_changed;
  });
}

void LinkModel::lose(Peer peer, bool was_raw) {
  if (!was_raw) return;
  std::lock_guard lock(mutex_);
  Learned& link = of(peer);
  link.is_doubted = ++link.lost <= most_lost;
}

void LinkModel::adopt(Peer peer, double rate) {
  if (this->rate(peer) == 0) return;
  std::lock_guard lock(mutex_);
  compute([&] {
    if (!(rate > 0)) return;
    of(peer).is_for_short.store(true, std::memory_order_relaxed);
    note(of(peer), rate);
  });
}

}  // namespace mpress::policy
