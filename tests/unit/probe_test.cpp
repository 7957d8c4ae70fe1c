// The measurement of a link in MPI_Init, on ranks that are threads and whose messages take
// simulated time.

#include "core/learning/probe.hpp"

#include <algorithm>
#include <array>
#include <barrier>
#include <functional>
#include <thread>

#include "check.hpp"

using namespace mpress;
using namespace mpress::engine;

namespace {

constexpr int ranks = 3;
constexpr std::uint64_t codec_rate = 4'000'000'000;

/// Seconds of a rank's message of so many bytes; `number`: how many it had before.
using Times = std::function<double(int rank, double bytes, int number)>;

struct Group {
  std::array<std::uint64_t, ranks> numbers{};
  std::barrier<> all{ranks};
};

class Rank final : public ProbeExchange {
 public:
  Rank(Group& group, int rank, const Times& times) : group_(group), rank_(rank), times_(times) {}

  Took exchange(const Partners&, std::size_t bytes) override {
    const double seconds = times_(rank_, static_cast<double>(bytes), exchanges++);
    const auto ns = static_cast<std::uint64_t>(seconds * 1e9);
    spent += seconds;
    return {ns, ns};
  }

  void find_greatest(std::span<std::uint64_t> numbers) override {
    group_.numbers[static_cast<std::size_t>(rank_)] = numbers[0];
    group_.all.arrive_and_wait();
    numbers[0] = *std::ranges::max_element(group_.numbers);
    group_.all.arrive_and_wait();
  }

  int exchanges = 0;
  double spent = 0;  ///< seconds

 private:
  Group& group_;
  const int rank_;
  const Times& times_;
};

/// On all ranks, which have to exchange as many messages.
template <class Result>
struct OnAll {
  template <class Act>
  OnAll(const Times& times, Act act) {
    Group group;
    std::array<std::thread, ranks> threads;
    std::array<int, ranks> exchanged{};
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      threads[rank] = std::thread([&, rank] {
        Rank own(group, static_cast<int>(rank), times);
        RateProbe probe(own, {static_cast<int>(rank + 1) % ranks, {}});
        results[rank] = act(static_cast<int>(rank), probe);
        exchanged[rank] = own.exchanges;
        if (rank == 0) spent = own.spent;
      });
    }
    for (std::thread& thread : threads) thread.join();
    exchanges = exchanged[0];
    CHECK(std::ranges::count(exchanged, exchanges) == ranks);
  }

  std::array<Result, ranks> results{};
  int exchanges = 0;
  double spent = 0;  ///< seconds, by rank 0
};

using Measured = OnAll<RateProbe::Found>;
using Confirmed = OnAll<bool>;

Measured measure(const Times& times) {
  return {times, [](int, RateProbe& probe) { return probe.measure(codec_rate); }};
}

Confirmed confirm(const Times& times, std::array<std::uint64_t, ranks> known) {
  return {times, [=](int rank, RateProbe& probe) {
            return probe.confirms(known[static_cast<std::size_t>(rank)]);
          }};
}

double time_at(double rate, double bytes) { return 30e-6 + bytes / rate; }

bool is_about(std::uint64_t rate, std::uint64_t wanted) {
  return rate > wanted - wanted / 10 && rate <= wanted;
}

/// 1 Gbit/s, where every other exchange takes much longer.
double slow_and_noisy(int, double bytes, int number) {
  return time_at(125e6, bytes) * (number % 2 == 0 ? 20 : 1);
}

void a_slow_link_is_measured() {
  const Measured measured = measure(slow_and_noisy);
  for (const auto& found : measured.results) {
    CHECK(found.is_certain && is_about(found.rate, 125'000'000));
  }
}

void no_codec_is_as_fast_as_some_links() {
  const Measured measured = measure([](int, double bytes, int) { return 1e-6 + bytes / 50e9; });
  for (const auto& found : measured.results) CHECK(found.is_certain && found.rate > 25'000'000'000);
  CHECK(measured.exchanges == 2);  // of the shortest messages, one to warm up
}

/// Whatever takes long at all sizes is not the link.
void a_busy_machine_is_not_taken_for_a_link() {
  const Measured measured = measure([](int, double, int) { return 15e-3; });
  for (const auto& found : measured.results) CHECK(!found.is_certain);
  CHECK(measured.spent < 0.15);
}

/// One member comes 3 ms late to each exchange: all ranks go on until messages take longer.
void a_late_member_does_not_hide_the_rate() {
  const Measured measured = measure(
      [](int rank, double bytes, int) { return time_at(1e9, bytes) + (rank == 1 ? 3e-3 : 0); });
  CHECK(is_about(measured.results[0].rate, 1'000'000'000) &&
        is_about(measured.results[2].rate, 1'000'000'000));
  CHECK(measured.results[1].rate < 900'000'000);
}

void known_rates_are_confirmed() {
  const auto all = [](const Confirmed& confirmed, bool wanted) {
    return std::ranges::count(confirmed.results, wanted) == ranks;
  };
  const Confirmed noisy = confirm(slow_and_noisy, {125'000'000, 100'000'000, 150'000'000});
  CHECK(all(noisy, true) && noisy.exchanges == 2);
  const Confirmed changed = confirm(slow_and_noisy, {125'000'000, 100'000'000, 400'000'000});
  CHECK(all(changed, false) && changed.exchanges == 4);
  CHECK(
      all(confirm(slow_and_noisy, {125'000'000, 0, 125'000'000}), false));  // rank 1 has not had it
  CHECK(confirm(slow_and_noisy, {}).exchanges == 0);
}

/// Who receives knows who sends, on however many hosts and ranks.
void partners_fit_together() {
  for (const std::vector<int>& host_of_rank :
       {std::vector{0}, {0, 0}, {0, 0, 0}, {0, 1}, {0, 0, 1}, {0, 1, 2, 1, 0, 1, 1, 2}}) {
    const schedule::Hosts hosts(host_of_rank);
    for (const auto ring : {ring_within_host, ring_of_hosts}) {
      if (ring == ring_of_hosts && hosts.count() == 1) continue;
      for (int to = 0; to < hosts.ranks(); ++to) {
        const Partners partners = ring(hosts, to);
        for (int from = 0; from < hosts.ranks(); ++from) {
          CHECK((ring(hosts, from).to == to) == (std::ranges::count(partners.from, from) == 1));
        }
        const bool is_alone = ring == ring_within_host && hosts.members_count(hosts.host(to)) == 1;
        CHECK((partners.to == Partners::no_rank) == is_alone);
        const bool is_on_host = !is_alone && hosts.host(partners.to) == hosts.host(to);
        CHECK(is_alone || is_on_host == (ring == ring_within_host));
      }
    }
  }
}

}  // namespace

int main() {
  a_slow_link_is_measured();
  no_codec_is_as_fast_as_some_links();
  a_busy_machine_is_not_taken_for_a_link();
  a_late_member_does_not_hide_the_rate();
  known_rates_are_confirmed();
  partners_fit_together();
  return check::failures != 0;
}
