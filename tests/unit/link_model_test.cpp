// Costs of links, by settings and by what a process has learned.

#include "policy/link_model.hpp"

#include <string>

#include "check.hpp"
#include "near.hpp"

using namespace mpress;
using namespace mpress::policy;
using check::is_near;

namespace {

constexpr std::size_t bytes = 1 << 20;
constexpr auto peer = Peer::other_host;

void curves_are_straight_between_points() {
  const Curve curve({{1000, 2e-6}, {3000, 6e-6}, {7000, 8e-6}});
  CHECK(is_near(curve.at(10), 2e-6) && is_near(curve.at(1000), 2e-6));
  CHECK(is_near(curve.at(2000), 4e-6) && is_near(curve.at(3000), 6e-6));
  CHECK(is_near(curve.at(5000), 7e-6));
  CHECK(is_near(curve.at(11000), 10e-6));  // at the last rate
  CHECK(is_near(Curve({{1000, 1e-6}}).at(3000), 3e-6));
  CHECK(is_near(Curve({{1000, 5e-6}, {2000, 4e-6}}).at(9000), 4e-6));  // never less and less
  CHECK(is_near(Curve::line(1e-6, 1e9).at(2e9), 2 + 1e-6));
  CHECK(!Curve() && Curve::line(0, 1));
}

void raw_messages_are_mpi_s_unless_that_is_slower() {
  constexpr Path linked{Place::device, Peer::linked};
  Costs costs = default_costs();
  costs.messages[index(Peer::linked)][1] = Curve::line(15e-6, 370e9);
  costs.raw_is_mpis = true;
  LinkModel links;
  links.configure(costs);
  // MPI's 20 us and 10 GB/s, which default_costs() assumes, over 15 us and 370 GB/s.
  CHECK(links.has_raw(linked, 1 << 20) && links.may_have_raw());
  costs.messages[static_cast<std::size_t>(Peer::same_host)][1] = Curve::line(5e-6, 300e9);
  links.configure(costs);
  CHECK(!links.has_raw(linked, 64 << 10) && links.has_raw(linked, 256 << 20));
  CHECK(costs.raw_by_mpi(linked, 64 << 10) == &costs.message({Place::device, Peer::same_host}));
  CHECK(!costs.raw_by_mpi(linked, 256 << 20));
  costs.messages[static_cast<std::size_t>(Peer::same_host)][1] = {};
  links.configure(costs);
  CHECK(!links.has_raw(linked, 256 << 20));
  costs.raw_is_mpis = false;
  links.configure(costs);
  CHECK(links.has_raw(linked, 64 << 10) && links.may_have_raw());
}

void slow_links_have_a_smaller_threshold() {
  constexpr std::size_t usual = 64 << 10;
  LinkModel links;
  CHECK(links.threshold(Peer::other_host, usual) == usual);
  links.begin(Peer::other_host, 125e6, Confidence::medium);
  CHECK(links.threshold(Peer::other_host, usual) == 4096);
  CHECK(links.threshold(Peer::other_host, 1024) == 1024);
  links.begin(Peer::other_host, 1.25e9, Confidence::medium);
  CHECK(links.threshold(Peer::other_host, usual) == 25000);
  links.begin(Peer::other_host, 50e9, Confidence::medium);
  CHECK(links.threshold(Peer::other_host, usual) == usual);
}

/// One has to be timed first.
void short_messages_do_not_go_by_a_rate_of_low_confidence() {
  constexpr std::size_t usual = 64 << 10;
  LinkModel links;
  links.begin(peer, 125e6, Confidence::low);
  CHECK(links.threshold(peer, usual) == LinkModel::least_timed_bytes);
  CHECK(links.threshold(peer, bytes) == bytes);
  CHECK(links.observe(peer, bytes, 8 * bytes, 0));
  CHECK(links.threshold(peer, usual) == 4096);
}

/// Nanoseconds of a message at this rate.
std::uint64_t ns_at(double rate) { return static_cast<std::uint64_t>(bytes / rate * 1e9); }

void the_median_of_the_latest_rates_counts() {
  LinkModel links;
  CHECK(!links.observe(peer, bytes, ns_at(1e9), 0) && links.rate(peer) == 0);  // nothing to begin
  links.begin(peer, 1e9, Confidence::full);
  CHECK(links.observe(peer, bytes, ns_at(1e6), 0));  // the next one verifies that
  CHECK(links.rate(peer) == 1e9);
  CHECK(!links.observe(peer, bytes, ns_at(1e9), 0) && links.rate(peer) > 0.99e9);
  links.adopt(peer, 1e8);  // another rank's
  CHECK(links.rate(peer) == 1e8);
  // A codec was at work meanwhile: the link has at least the rate of all of the time.
  links.begin(peer, 1e8, Confidence::full);
  for (int i = 0; i < 2; ++i) links.observe(peer, bytes, ns_at(4e8), 1e-3);
  CHECK(links.rate(peer) > 3.9e8);
  links.observe(peer, bytes, ns_at(2e8), 4e-3);  // and no less than what the codec left would say
  CHECK(links.rate(peer) > 3.9e8);
}

std::uint64_t no_time() { return 1; }

Timing judge(LinkModel& links, bool is_encoded) {
  const double raw = bytes / links.rate(peer);
  return links.judge(peer, bytes, is_encoded, raw, is_encoded ? raw / 2 : raw, no_time);
}

void doubted_rates_are_verified() {
  LinkModel links;
  CHECK(links.judge(peer, bytes, true, 1, 1, no_time) == Timing::none);  // no rate, no question
  links.begin(peer, 1e9, Confidence::full);
  CHECK(judge(links, true) == Timing::none);
  links.begin(peer, 1e9, Confidence::medium);
  CHECK(judge(links, false) == Timing::none && judge(links, true) == Timing::raw);
  CHECK(judge(links, true) == Timing::none);
  // Where such a message is lost the next one verifies it, but not for ever.
  int verifying = 0;
  for (int i = 0; i < 20; ++i) {
    links.lose(peer, true);
    if (judge(links, true) == Timing::raw) ++verifying;
  }
  CHECK(verifying == 4);
  // One in so many encoded messages is timed as it goes.
  int timed = 0;
  for (int i = 0; i < 32; ++i) timed += judge(links, true) == Timing::as_it_is;
  CHECK(timed == 2);
}

void the_fastest_linked_devices_count() {
  LinkModel links;
  CHECK(!links.learned_by());
  CHECK(links.learn_linked(25e9, 0, "one") && !links.learn_linked(12e9, 0, "another"));
  CHECK(links.rate(Peer::linked) == 25e9 && links.learned_by() == std::string("one"));
}

}  // namespace

int main() {
  curves_are_straight_between_points();
  raw_messages_are_mpi_s_unless_that_is_slower();
  slow_links_have_a_smaller_threshold();
  short_messages_do_not_go_by_a_rate_of_low_confidence();
  the_median_of_the_latest_rates_counts();
  doubted_rates_are_verified();
  the_fastest_linked_devices_count();
  return check::failures != 0;
}
