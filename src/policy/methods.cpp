#include "policy/methods.hpp"

#include <algorithm>
#include <vector>

#include "codec/float_environment.hpp"

namespace mpress::policy {
namespace {

using schedule::Algorithm;
using schedule::Hosts;
using schedule::Method;
using schedule::Op;

/// Shorter segments of a broadcast are not worth a codec's calls, nor a link's.
constexpr std::size_t least_segment = 64 * 1024;
constexpr int most_segments = 256;
/// And shorter ones are cut for no algorithm that is not asked for.
constexpr std::size_t least_piece = 16 * 1024;

/// Rounds of so many partners count as crowded.
constexpr int crowd = 3;

/// Bytes between hosts take longer where partners change from round to round than where each sends
/// to one all the time, whose connection is open wide then: four hosts at 1 Gbit/s (TCP) gathered
/// 8 MB each in 240 ms in a ring, and in 311 scattered, 376 after Bruck, 428 by doubling.
constexpr double turning = 1.15;

double latency_of(const LinkCosts& costs, int rounds, int at_once) {
  return rounds * costs.round_seconds * (1 + costs.partner_share * (at_once - 1));
}

double moving(const LinkCosts& costs, double bytes, int at_once) {
  return bytes * costs.seconds_a_byte * (at_once >= crowd ? costs.crowding : 1);
}

/// Numbers of segments to try: each twice the one before. The first is the least that the algorithm
/// takes.
std::vector<int> segments_of(Algorithm algorithm, Op op, std::size_t bytes, const Hosts& hosts) {
  if (op != Op::bcast) return {1};
  int unit = 1;
  switch (algorithm) {
    case Algorithm::scatter_ring:
    case Algorithm::scatter_doubling: return {hosts.ranks()};
    case Algorithm::two_shot:
      unit = std::max((hosts.is_mixed() ? hosts.count() : hosts.ranks()) - 1, 1);
      break;
    // One that all receive whole in their only round is a message: that is cut by its link.
    case Algorithm::linear: return {1};
    case Algorithm::binomial:
      if (!hosts.is_mixed()) return {1};
      break;
    default: break;
  }
  std::vector<int> found{unit};
  for (int segments = 2 * unit; segments <= most_segments; segments *= 2) {
    if (bytes / static_cast<std::size_t>(segments) < least_segment) break;
    found.push_back(segments);
  }
  return found;
}

}  // namespace

double collective_seconds(const Method& method, Op op, double bytes, const Hosts& hosts,
                          const CollectiveCosts& costs) {
  const schedule::Work work = schedule::work(method, op, hosts, costs.within.is_shared);
  const double block = bytes / method.segments;
  const double latency = latency_of(costs.within, work.rounds_within, work.at_once) +
                         latency_of(costs.between, work.rounds_between, work.at_once);
  const bool passes_on = method.segments > 1 && (method.algorithm == Algorithm::chain ||
                                                 method.algorithm == Algorithm::two_shot);
  // What several ranks get of one is written once where they share that.
  const bool is_read_alike = costs.within.is_shared && (op == Op::bcast || op == Op::allgather);
  const double within = (passes_on ? costs.within.passing_on : 1) *
                        moving(costs.within, work.within * block, is_read_alike ? 1 : work.at_once);
  const double between =
      (work.turns ? turning : 1) * moving(costs.between, work.between * block, work.at_once);
  // In rounds of many partners both kinds of links work all the time; pairwise ones take either.
  const bool mixes = op == Op::alltoall && method.algorithm == Algorithm::scattered;
  const double first = mixes ? 0 : std::min(within, between) / std::max(method.segments, 1);
  return latency + std::max(within, between) + first;
}

Method choose_method(Op op, std::size_t bytes, const Hosts& hosts, const CollectiveCosts& costs,
                     double wire_per_raw, Algorithm wanted) {
  const int window = std::min(most_at_once, std::max(hosts.ranks() - 1, 1));
  Method best;
  double least = 0;
  const auto consider = [&](Algorithm algorithm) {
    for (const int segments : segments_of(algorithm, op, bytes, hosts)) {
      const bool is_short = bytes / static_cast<std::size_t>(segments) < least_piece;
      if (segments > 1 && is_short && algorithm != wanted) continue;
      const Method method{algorithm, segments, algorithm == Algorithm::pairwise ? 1 : window};
      const double seconds =
          collective_seconds(method, op, static_cast<double>(bytes) * wire_per_raw, hosts, costs);
      if (best.algorithm != Algorithm::none && seconds >= least) continue;
      best = method;
      least = seconds;
    }
  };
  const std::vector<Algorithm> serving = schedule::run_only(schedule::algorithms_of(op, hosts), op);
  if (std::find(serving.begin(), serving.end(), wanted) != serving.end()) {
    consider(wanted);
  } else if (bytes == 0) {
    consider(serving.front());
  } else {
    for (const Algorithm algorithm : serving) consider(algorithm);
  }
  return best;
}

Method MethodChoice::operator()(Op op, std::size_t bytes, const Hosts& hosts,
                                const CollectiveCosts& costs, double wire_per_raw,
                                Algorithm wanted) {
  std::optional<Choice>& last = last_[static_cast<std::size_t>(op)];
  const Question question{bytes, wire_per_raw, wanted, costs};
  if (!last || last->question != question) {
    const auto choose = [&] {
      return choose_method(op, bytes, hosts, costs, wire_per_raw, wanted);
    };
    last = {question, compute(choose)};
  }
  return last->method;
}

}  // namespace mpress::policy
