// Schedules of reductions where partial sums travel, for `mpress bench`, and the rounds of any
// collective, for `mpress simulate`.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "python/arguments.hpp"
#include "schedule/algorithms.hpp"
#include "simulation/rounds.hpp"
#include "simulation/sum_algorithms.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace mpress::python {
namespace {

struct Named {
  simulation::SumAlgorithm algorithm;
  simulation::Reduction reduction;
};

Named named(const std::string& algorithm, const std::string& reduction, int size) {
  const auto known_algorithm = simulation::sum_algorithm_of(algorithm);
  if (!known_algorithm) {
    throw nb::value_error(
        ("algorithm is '" + algorithm + "'; expected two-shot, ring, doubling, halving or binomial")
            .c_str());
  }
  const auto known_reduction = simulation::reduction_of(reduction);
  if (!known_reduction) {
    throw nb::value_error(
        ("reduction is '" + reduction + "'; expected allreduce, reduce or reduce_scatter").c_str());
  }
  if (size < 1) {
    throw nb::value_error(("size is " + std::to_string(size) + "; expected 1 or more").c_str());
  }
  return {*known_algorithm, *known_reduction};
}

nb::list blocks_of(const schedule::Schedule& made, const schedule::Transfer& transfer) {
  nb::list blocks;
  for (const schedule::Block block : made.blocks_of(transfer)) blocks.append(block);
  return blocks;
}

nb::tuple sum_schedule(const std::string& algorithm, const std::string& reduction, int rank,
                       int size, int root) {
  const Named one = named(algorithm, reduction, size);
  for (const auto& [name, value] : {std::pair("rank", rank), std::pair("root", root)}) {
    if (value >= 0 && value < size) continue;
    throw nb::value_error((std::string(name) + " is " + std::to_string(value) + "; expected 0 to " +
                           std::to_string(size - 1))
                              .c_str());
  }
  const schedule::Schedule made =
      simulation::make(one.algorithm, {one.reduction, size, root}, rank);
  nb::list rounds;
  for (int round = 0; round < made.rounds; ++round) {
    nb::list sends, receives;
    for (const schedule::Transfer& send : made.sends) {
      if (send.round == round) sends.append(nb::make_tuple(send.peer, blocks_of(made, send)));
    }
    for (const schedule::Transfer& receive : made.receives) {
      if (receive.round != round) continue;
      receives.append(nb::make_tuple(receive.peer, blocks_of(made, receive), receive.combines));
    }
    rounds.append(nb::make_tuple(sends, receives));
  }
  return nb::make_tuple(simulation::pieces_of(one.algorithm, size), rounds);
}

nb::list sum_work(const std::string& algorithm, const std::string& reduction, int size) {
  const Named one = named(algorithm, reduction, size);
  nb::list rounds;
  for (const simulation::SumRound& round :
       simulation::sum_work(one.algorithm, one.reduction, size)) {
    rounds.append(nb::make_tuple(round.moved, round.encoded, round.decoded, round.at_once));
  }
  return rounds;
}

/// As many ranks on each host, but on the last, which may have fewer.
schedule::Hosts hosts_of(int size, int members) {
  if (size < 1 || members < 1) throw nb::value_error("size and members: expected 1 or more");
  std::vector<int> host(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) host[static_cast<std::size_t>(rank)] = rank / members;
  return schedule::Hosts(host);
}

schedule::Op known_op(const std::string& op) {
  if (const auto known = schedule::op_of(op)) return *known;
  throw nb::value_error(("op is '" + op + "'; expected one that moves data").c_str());
}

nb::list data_algorithms(const std::string& op, int size, int members) {
  nb::list names;
  for (const auto algorithm : schedule::algorithms_of(known_op(op), hosts_of(size, members)))
    names.append(schedule::name(algorithm));
  return names;
}

nb::tuple tuple_of(const simulation::Counted& counted) {
  nb::list rounds;
  for (const simulation::Round& one : counted.rounds) {
    rounds.append(nb::make_tuple(one.within, one.between, one.encoded, one.decoded, one.hop_encoded,
                                 one.hop_decoded, one.at_once));
  }
  const simulation::CodecTotal& total = counted.total;
  return nb::make_tuple(rounds, nb::make_tuple(total.encoded, total.encoding_rounds, total.decoded,
                                               total.decoding_rounds));
}

schedule::Method named_method(const std::string& algorithm, int segments, int window) {
  const auto known = schedule::algorithm_of(algorithm);
  if (!known) throw nb::value_error(("algorithm is '" + algorithm + "'").c_str());
  return {*known, segments, window};
}

nb::tuple data_rounds(const std::string& algorithm, const std::string& op, int size, int members,
                      int segments, int window) {
  return tuple_of(simulation::rounds_of(named_method(algorithm, segments, window), known_op(op),
                                        hosts_of(size, members)));
}

nb::tuple sum_rounds(const std::string& algorithm, const std::string& reduction, int size,
                     int members, const std::string& sharing, int window) {
  const Named one = named(algorithm, reduction, size);
  const schedule::Hosts hosts = hosts_of(size, members);
  nb::list parts;
  if (one.algorithm != simulation::SumAlgorithm::two_shot) {
    parts.append(tuple_of(simulation::rounds_of(one.algorithm, one.reduction, hosts)));
  } else {
    const schedule::Method method = one.reduction == simulation::Reduction::reduce_scatter
                                        ? schedule::Method{}
                                        : named_method(sharing, 1, window);
    for (const auto& part : simulation::two_shot_rounds(one.reduction, method, hosts, window))
      parts.append(tuple_of(part));
  }
  return nb::make_tuple(one.algorithm == simulation::SumAlgorithm::two_shot
                            ? size
                            : simulation::pieces_of(one.algorithm, size),
                        parts);
}

}  // namespace

void define_schedules(nb::module_& m) {
  m.def("sum_schedule", &sum_schedule, "algorithm"_a, "reduction"_a, "rank"_a, "size"_a,
        "root"_a = 0,
        "What a rank does in a reduction where partial sums travel: how many pieces the vector is "
        "cut into, and the rounds, each ([(peer, pieces)], [(peer, pieces, combines)]): what it "
        "sends of what it has when the round begins, and receives, to combine with what it has or "
        "to put in its place.");
  m.def("sum_work", &sum_work, "algorithm"_a, "reduction"_a, "size"_a,
        "What the rank that has most to do does in each round, in vectors: (moved, encoded, "
        "decoded, partners). Empty for algorithms that do not serve the reduction.");
  m.def(
      "data_algorithms", &data_algorithms, "op"_a, "size"_a, "members"_a = 1,
      "The algorithms that serve a collective which moves data, with so many ranks on each host.");
  m.def("data_rounds", &data_rounds, "algorithm"_a, "op"_a, "size"_a, "members"_a = 1,
        "segments"_a = 1, "window"_a = 1,
        "Counted in the schedules of all ranks, in blocks: (rounds, total). A round is, of the "
        "rank or the host that has most, (within a host, between hosts, encoded, decoded, encoded "
        "and decoded with a codec in every hop, partners); the total is what the rank that has "
        "most encodes, in how many rounds, and what one decodes, in how many.");
  m.def("sum_rounds", &sum_rounds, "algorithm"_a, "reduction"_a, "size"_a, "members"_a = 1,
        "sharing"_a = "scattered", "window"_a = 1,
        "The same of a reduction: how many pieces the vector is cut into, and its parts, one after "
        "another. Two shots have several; `sharing` is the algorithm of the last.");
}

}  // namespace mpress::python
