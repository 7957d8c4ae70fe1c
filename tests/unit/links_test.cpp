// What is learned of links from messages that were timed, and how many are.

#include "policy/links.hpp"

#include "check.hpp"

using namespace mpress::policy;

namespace {

constexpr Peer peer = Peer::other_host;
constexpr std::size_t bytes = 8 << 20;
constexpr double slow = 125e6;  // 1 Gbit/s

std::uint64_t clock_ns = 1'000'000;  // stands still, but where time is the point
std::uint64_t clock_now() { return clock_ns; }

bool is_near(double a, double b) { return a <= 1.01 * b && b <= 1.01 * a; }

/// Sends `messages` messages of which each takes `seconds`, and raw ones `raw_seconds`; counts how
/// many go raw to be timed, and tells the link of none.
int raw_timings(Links& links, int messages, bool is_encoded, double raw_seconds, double seconds) {
  int count = 0;
  for (int i = 0; i < messages; ++i) {
    count += links.judge(peer, bytes, is_encoded, raw_seconds, seconds, clock_now) == Timing::raw;
  }
  return count;
}

/// A message that would be encoded.
Timing judge_encoded(Links& links) {
  return links.judge(peer, bytes, true, 0.067, 0.005, clock_now);
}

/// Of some that would be encoded, how many go raw: each is told of by `tell`.
template <typename Tell>
int verifications(Links& links, const Tell& tell) {
  int raw = 0;
  for (int i = 0; i < 20; ++i) {
    if (judge_encoded(links) != Timing::raw) continue;
    ++raw;
    tell();
  }
  return raw;
}

/// The link has the rate `slow`, which a message has verified.
void begin_verified(Links& links) {
  links.begin(peer, slow);
  judge_encoded(links);
  links.observe(peer, bytes, bytes / slow, 0);
}

void what_was_not_begun_is_not_learned() {
  Links links;
  links.observe(peer, bytes, 0.1, 0);
  CHECK(links.rate(peer) == 0);
  CHECK(raw_timings(links, 1000, false, 0.1, 0.1) == 0);
  links.begin(peer, slow);
  CHECK(links.rate(peer) == slow && links.rate(Peer::same_host) == 0);
  CHECK(links.judge(peer, Links::least_bytes - 1, true, 1, 1, clock_now) == Timing::none);
}

/// The first message that would be encoded goes raw: what was measured at the start may be wrong.
void a_rate_is_verified() {
  Links links;
  links.begin(peer, slow);
  CHECK(links.judge(peer, bytes, false, 0.067, 0.067, clock_now) ==
        Timing::none);  // none is to be encoded
  CHECK(judge_encoded(links) == Timing::raw);
  links.observe(peer, bytes, bytes / (0.8 * slow), 0);
  CHECK(is_near(links.rate(peer), slow));
  CHECK(judge_encoded(links) == Timing::none);
}

void a_wrong_rate_is_found_out() {
  Links links;
  links.begin(peer, slow);
  const int raw = verifications(links, [&] { links.observe(peer, bytes, bytes / 8e9, 0); });
  CHECK(raw == 2 && is_near(links.rate(peer), 8e9));
}

/// One process that was stopped says nothing of the link.
void one_far_off_message_changes_nothing() {
  Links links;
  links.begin(peer, 8e9);
  links.observe(peer, bytes, 1, 0);
  CHECK(is_near(links.rate(peer), 8e9));
  links.observe(peer, bytes, 1, 0);
  CHECK(is_near(links.rate(peer), bytes));
}

/// Timing adds at most about a hundredth to the time of messages.
void timing_costs_little() {
  Links links;
  begin_verified(links);
  const int encoded = raw_timings(links, 100000, true, 0.067, 0.005);
  CHECK(encoded > 0 && encoded * (0.067 - 0.005 + 0.0042) <= 0.0101 * 100000 * 0.005);
  const int raw = raw_timings(links, 100000, false, 1e-3, 1e-3);
  CHECK(raw > 0 && raw * 0.0042 <= 0.0101 * 100000 * 1e-3);
}

void encoded_messages_are_timed_too() {
  Links links;
  begin_verified(links);
  int timed = 0;
  for (int i = 0; i < 160; ++i) {
    timed += judge_encoded(links) == Timing::as_it_is;
  }
  CHECK(timed == 10);
}

/// From an encoded message the rate follows only as far as the codec lets it be seen.
void encoded_messages_bound_the_rate() {
  Links links;
  links.begin(peer, slow);
  links.observe(peer, 400'000, 0.005, 0.004);  // 80 to 400 MB/s
  CHECK(links.rate(peer) == slow);
  for (int i = 0; i < 2; ++i) links.observe(peer, 400'000, 0.02, 0.004);  // at most 25 MB/s
  CHECK(is_near(links.rate(peer), 25e6));
  judge_encoded(links);
  links.observe(peer, bytes, bytes / 25e6, 0);
  CHECK(judge_encoded(links) == Timing::none);
  // Faster than believed, as far as the codec lets it be seen: a raw message is to tell.
  links.observe(peer, 400'000, 0.004, 0.004);
  CHECK(judge_encoded(links) == Timing::raw);
}

void what_others_see_counts() {
  Links links;
  links.hear(peer, 1e9);
  CHECK(links.rate(peer) == 0);
  links.begin(peer, slow, Belief::full);
  CHECK(judge_encoded(links) == Timing::none);
  for (int i = 0; i < 2; ++i) links.hear(peer, 1e9);
  CHECK(is_near(links.rate(peer), 1e9));
}

/// Messages of which each is believed to take `believed`, and takes `seconds`: which of them find
/// out?
int messages_until_found(Links& links, double believed, double seconds) {
  const double rate = static_cast<double>(bytes) / seconds;
  for (int i = 1; i <= 1000; ++i) {
    clock_ns += static_cast<std::uint64_t>(1e9 * seconds);
    if (links.judge(peer, bytes, false, believed, believed, clock_now) != Timing::raw) continue;
    links.observe(peer, bytes, seconds, 0);
    if (is_near(links.rate(peer), rate)) return i;
  }
  return 0;
}

/// Raw messages are believed to take 1 ms, and take 67: what is believed of their time would have
/// hundreds of them go by.
void a_link_that_becomes_slow_is_found_out() {
  Links links;
  links.begin(peer, 8e9);
  judge_encoded(links);
  links.observe(peer, bytes, bytes / 8e9, 0);
  const int found = messages_until_found(links, 1e-3, 0.067);
  CHECK(found > 2 && found <= 40);
}

void what_cannot_be_told_is_asked_again_a_few_times() {
  Links links;
  links.begin(peer, slow);
  const int raw = verifications(links, [&] { links.lose(peer, true); });
  CHECK(raw == 5 && links.rate(peer) == slow);
}

}  // namespace

int main() {
  what_was_not_begun_is_not_learned();
  a_rate_is_verified();
  a_wrong_rate_is_found_out();
  one_far_off_message_changes_nothing();
  timing_costs_little();
  encoded_messages_are_timed_too();
  encoded_messages_bound_the_rate();
  what_others_see_counts();
  a_link_that_becomes_slow_is_found_out();
  what_cannot_be_told_is_asked_again_a_few_times();
  return check::failures != 0;
}
