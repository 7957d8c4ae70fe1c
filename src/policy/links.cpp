#include "policy/links.hpp"

#include <algorithm>
#include <utility>

namespace mpress::policy {
namespace {

/// Of the time that messages take, what timing them may add.
constexpr double timing_share = 0.01;

/// Of the time that passes, for messages that go raw anyway, one in so many at most: where a link
/// has become slow, they take longer than is believed.
constexpr double passing_share = 0.002;
constexpr std::uint32_t passing_interval = 8;

/// Of messages' time, for those that verify a rate that is doubted, after the first few.
constexpr double doubted_share = 0.05;
constexpr std::uint32_t free_verifications = 6;

/// Encoded messages are timed one in so many: that adds one short message back.
constexpr std::uint32_t encoded_interval = 16;

/// A message whose half takes less than this to travel is not worth the calls of a codec.
constexpr double worth_seconds = 20e-6;

/// What sending a raw message in chunks takes more than in one piece: a copy, and the chunks.
double extra_seconds(std::size_t bytes) { return 20e-6 + 0.5e-9 * static_cast<double>(bytes); }

/// Rates of which one is more than so many times the other differ.
constexpr double differ = 1.5;

/// Messages that were to verify a rate, and could not tell, in a row.
constexpr std::uint32_t most_lost = 4;

}  // namespace

bool LearnedLinks::is_near(double rate, double other) {
  return rate <= differ * other && other <= differ * rate;
}

void LearnedLinks::set(Link& link, double rate) {
  link.worth_bytes.store(static_cast<std::size_t>(worth_seconds * rate), std::memory_order_relaxed);
  link.rate.store(rate, std::memory_order_relaxed);
}

void LearnedLinks::note(Link& link, double rate) {
  link.seen[link.next++ % kept] = rate;
  std::array<double, kept> sorted = link.seen;
  std::sort(sorted.begin(), sorted.end());
  set(link, sorted[kept / 2]);
}

void LearnedLinks::begin(Peer peer, double rate, Belief belief) {
  std::lock_guard lock(mutex_);
  Link& link = of(peer);
  link.seen.fill(rate);
  link.is_doubted = belief != Belief::full;
  link.is_for_short.store(belief != Belief::little, std::memory_order_relaxed);
  set(link, rate);
}

Timing LearnedLinks::judge(Peer peer, std::size_t bytes, bool is_encoded, double raw_seconds,
                           double seconds, Clock clock) {
  if (bytes < least_bytes || rate(peer) == 0) return Timing::none;
  std::lock_guard lock(mutex_);
  Link& link = of(peer);
  link.seconds_since_raw += seconds;
  if (link.raw_ns == 0) link.raw_ns = clock();
  const double extra =
      extra_seconds(bytes) + (is_encoded ? std::max(raw_seconds - seconds, 0.) : 0);
  // What is doubted may cost more, but not without end.
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

bool LearnedLinks::observe(Peer peer, std::size_t wire_bytes, double seconds,
                           double codec_seconds) {
  if (wire_bytes == 0 || seconds <= 0 || rate(peer) == 0) return false;
  std::lock_guard lock(mutex_);
  Link& link = of(peer);
  const double before = rate(peer);
  const double least = static_cast<double>(wire_bytes) / seconds;
  const bool was_for_short = link.is_for_short.exchange(true, std::memory_order_relaxed);
  if (codec_seconds == 0) {
    note(link, least);
    link.lost = 0;
    link.is_doubted = !is_near(least, rate(peer));
    // Asked once, and not again by what that tells: links may be noisy.
    link.has_changed = link.is_doubted && !std::exchange(link.was_asked, false);
    return link.has_changed || !was_for_short || !is_near(before, rate(peer));
  }
  // The link was at work for some of the time, between what the codec left and all of it.
  const double left = seconds - codec_seconds;
  if (least > rate(peer)) {
    note(link, least);
    link.is_doubted = !is_near(least, rate(peer));
  } else if (left > 0 && static_cast<double>(wire_bytes) / left < rate(peer)) {
    note(link, static_cast<double>(wire_bytes) / left);
  }
  return !was_for_short || !is_near(before, rate(peer));
}

void LearnedLinks::hear(Peer peer, double rate) {
  if (this->rate(peer) == 0 || !(rate > 0)) return;
  std::lock_guard lock(mutex_);
  of(peer).is_for_short.store(true, std::memory_order_relaxed);
  note(of(peer), rate);
}

void LearnedLinks::lose(Peer peer, bool was_raw) {
  if (!was_raw) return;
  std::lock_guard lock(mutex_);
  Link& link = of(peer);
  link.is_doubted = ++link.lost <= most_lost;
}

}  // namespace mpress::policy
