// What a whole collective moves, round by round, counted in the schedules of all its ranks: what
// `mpress simulate` prices. schedule::work() tells the same in a few numbers, for choosing in
// nanoseconds.
#pragma once

#include <vector>

#include "schedule/algorithms.hpp"
#include "simulation/sum_algorithms.hpp"

namespace mpress::simulation {

using schedule::Hosts;
using schedule::Method;
using schedule::Op;

/// In blocks (of reductions: pieces). Each is that of the rank, or the host, that has most to do in
/// the round, so two of them may be of two ranks.
struct Round {
  double within = 0;   ///< that a rank sends to, or receives from, ranks of its host
  double between = 0;  ///< that a host sends to, or receives from, others
  double encoded = 0;  ///< by a rank where origins encode: those that it sends for the first time
  double decoded = 0;  ///< by a rank, then: those that came and that it wants
  double hop_encoded = 0;  ///< by a rank with a codec in every hop: different ones that it sends
  double hop_decoded = 0;  ///< then: all that came
  int at_once = 0;         ///< partners of a rank

  bool operator==(const Round&) const = default;
};

/// What the rank does that encodes, or decodes, most blocks in the whole collective where origins
/// encode, and in how many rounds.
struct CodecTotal {
  double encoded = 0;
  double decoded = 0;
  int encoding_rounds = 0;
  int decoding_rounds = 0;

  bool operator==(const CodecTotal&) const = default;
};

struct Counted {
  std::vector<Round> rounds;
  CodecTotal total;
};

/// Of a method of algorithms_of(op, hosts); else std::invalid_argument. The root is rank 0.
Counted rounds_of(const Method& method, Op op, const Hosts& hosts);

/// Of an algorithm in which partial sums travel, whatever the hosts. What is encoded is the same
/// with a codec in every hop and at origins, as a sum has no other origin than who made it: what a
/// rank has not changed since it came, or was encoded, is not encoded again.
Counted rounds_of(SumAlgorithm algorithm, Reduction reduction, const Hosts& hosts);

/// Of the reduction that the engine runs, one after another: pieces go to their owners (where ranks
/// share several hosts, to who adds them up on the host, and from there: host_sums.hpp), and sums
/// by `sharing`, an allgather for allreduce or a gather for reduce. What a rank brings itself is
/// never encoded.
std::vector<Counted> two_shot_rounds(Reduction reduction, const Method& sharing, const Hosts& hosts,
                                     int window);

}  // namespace mpress::simulation
