// Which algorithm moves the data of a collective call: by what rounds and bytes cost, from numbers
// that all ranks share, so that all choose alike.
//
// T = rounds latency + blocks bytes / rate, the model of Hockney as R. Thakur et al. apply it
// ("Optimization of Collective Communication Operations in MPICH", IJHPCA 19(1), 2005), with rounds
// and blocks counted by schedule::work(). Links within hosts and between them work at the same
// time: of their bytes the longer time counts, and one segment of the other. Codecs are not in it:
// each block is encoded once and decoded once by each reader, whatever the algorithm.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

#include "schedule/algorithms.hpp"

namespace mpress::policy {

/// Of raw bytes on links of one kind.
struct LinkCosts {
  double round_seconds = 0;   ///< of a round, however little it moves, with one partner
  double seconds_a_byte = 0;  ///< of one rank's transfer; between hosts, of one host's
  /// By how much longer bytes take when a rank has many partners at once; at least 1.
  double crowding = 1;
  bool is_shared = false;      ///< many may read what was written once
  double partner_share = 0.1;  ///< what each further partner adds to a round, of what one takes
  /// By how much longer bytes take where ranks pass on one segment while the next one comes.
  double passing_on = 1;
  bool is_network = false;  ///< bytes are on their way while a rank begins other messages

  bool operator==(const LinkCosts&) const = default;
};

struct CollectiveCosts {
  LinkCosts within;   ///< of a host
  LinkCosts between;  ///< hosts

  bool operator==(const CollectiveCosts&) const = default;
};

/// Of links between GPUs, for blocks that are encoded: payloads are stored where they are read,
/// whoever reads others, and those of a round take one launch; but each round takes a codec's.
constexpr LinkCosts of_payloads(LinkCosts linked) {
  constexpr double of_codec = 50e-6;
  return {std::max(linked.round_seconds, of_codec), linked.seconds_a_byte};
}

/// Most blocks each way that are under way at once, in rounds of many.
inline constexpr int most_at_once = 32;

/// Seconds of a call; not of its codecs. `bytes`: on the wire, of a broadcast's whole data, or of
/// one block.
double collective_seconds(const schedule::Method& method, schedule::Op op, double bytes,
                          const schedule::Hosts& hosts, const CollectiveCosts& costs);

/// The one that takes least, of those that serve the collective on these hosts and pass on nothing
/// of others'. `bytes`: as above,
/// before they are encoded; 0: no rank knows, so nothing is forwarded. `wire_per_raw`: what is
/// expected of encoding. `wanted`: the algorithm, where it is among those; none: any.
schedule::Method choose_method(schedule::Op op, std::size_t bytes, const schedule::Hosts& hosts,
                               const CollectiveCosts& costs, double wire_per_raw,
                               schedule::Algorithm wanted = schedule::Algorithm::none);

/// choose_method() for the same hosts at every call. Remembers the last choice for each operation,
/// as a call is mostly like the one before: pricing all takes some hundred nanoseconds.
class MethodChoice {
 public:
  schedule::Method operator()(schedule::Op op, std::size_t bytes, const schedule::Hosts& hosts,
                              const CollectiveCosts& costs, double wire_per_raw,
                              schedule::Algorithm wanted = schedule::Algorithm::none);

 private:
  struct Question {
    std::size_t bytes;
    double wire_per_raw;
    schedule::Algorithm wanted;
    CollectiveCosts costs;
    bool operator==(const Question&) const = default;
  };
  struct Choice {
    Question question;
    schedule::Method method;
  };
  std::array<std::optional<Choice>, schedule::op_count> last_;
};

}  // namespace mpress::policy
