// Schedules of reductions where partial sums travel, for `mpress bench` and `mpress simulate`.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "python/arguments.hpp"
#include "schedule/sum_algorithms.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace mpress::python {
namespace {

struct Named {
  schedule::SumAlgorithm algorithm;
  schedule::Reduction reduction;
};

Named named(const std::string& algorithm, const std::string& reduction, int size) {
  const auto known_algorithm = schedule::sum_algorithm_of(algorithm);
  if (!known_algorithm) {
    throw nb::value_error(
        ("algorithm is '" + algorithm + "'; expected two-shot, ring, doubling, halving or binomial")
            .c_str());
  }
  const auto known_reduction = schedule::reduction_of(reduction);
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
  const schedule::Schedule made = schedule::make(one.algorithm, {one.reduction, size, root}, rank);
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
  return nb::make_tuple(schedule::pieces_of(one.algorithm, size), rounds);
}

nb::list sum_work(const std::string& algorithm, const std::string& reduction, int size) {
  const Named one = named(algorithm, reduction, size);
  nb::list rounds;
  for (const schedule::SumRound& round : schedule::sum_work(one.algorithm, one.reduction, size)) {
    rounds.append(nb::make_tuple(round.moved, round.encoded, round.decoded, round.at_once));
  }
  return rounds;
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
}

}  // namespace mpress::python
