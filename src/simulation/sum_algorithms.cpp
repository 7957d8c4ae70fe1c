#include "simulation/sum_algorithms.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>

#include "schedule/builder.hpp"
#include "simulation/recursive_sums.hpp"
#include "simulation/ring_sums.hpp"
#include "simulation/tree_sums.hpp"

namespace mpress::simulation {
namespace {

static_assert(std::size(sum_algorithm_names) == static_cast<std::size_t>(SumAlgorithm::count_));

bool serves(SumAlgorithm algorithm, Reduction reduction) {
  const std::vector<SumAlgorithm> serving = sum_algorithms_of(reduction);
  return std::ranges::find(serving, algorithm) != serving.end();
}

/// Each shot is one round; its owner combines a piece of all, and encodes the sum for the second.
std::vector<SumRound> two_shots(Reduction reduction, int size) {
  const double piece = 1.0 / size;
  const double others = piece * (size - 1);
  std::vector<SumRound> rounds{{others, others, others, size - 1}};
  if (reduction != Reduction::reduce_scatter) rounds.push_back({others, piece, others, size - 1});
  return rounds;
}

/// What is combined was encoded for that hop, and what replaces was, too; but in a ring's
/// all-gather by its owner alone. The unit tests count this in the schedules.
std::vector<SumRound> hops(SumAlgorithm algorithm, Reduction reduction, int size) {
  const double piece = 1.0 / size;
  int places = 1;
  while (2 * places <= size) places *= 2;
  const int remainder = size - places;
  std::vector<SumRound> rounds;
  const auto add = [&](int count, double moved) {
    for (int i = 0; i < count; ++i) rounds.push_back({moved, moved, moved});
  };
  switch (algorithm) {
    case SumAlgorithm::ring:
      add(size - 1, piece);
      if (reduction == Reduction::reduce_scatter) break;
      for (int i = 0; i < size - 1; ++i) rounds.push_back({piece, i == 0 ? piece : 0, piece});
      break;
    case SumAlgorithm::doubling:
      if (remainder > 0) add(1, 1);
      for (int distance = 1; distance < places; distance *= 2) add(1, 1);
      if (remainder > 0) add(1, 1);
      break;
    case SumAlgorithm::halving:
      if (remainder > 0) add(1, 1);
      // The first half of the places has most blocks.
      for (int distance = places / 2; distance > 0; distance /= 2)
        add(1, piece * (distance + std::min(remainder, distance)));
      if (remainder > 0) add(1, piece);
      break;
    case SumAlgorithm::binomial:
      for (int reached = 1; reached < size; reached *= 2) add(1, 1);
      break;
    case SumAlgorithm::two_shot:
    case SumAlgorithm::count_: break;
  }
  return rounds;
}

}  // namespace

std::optional<SumAlgorithm> sum_algorithm_of(std::string_view name) {
  for (std::size_t i = 0; i < std::size(sum_algorithm_names); ++i)
    if (name == sum_algorithm_names[i]) return static_cast<SumAlgorithm>(i);
  return std::nullopt;
}

std::optional<Reduction> reduction_of(std::string_view name) {
  for (std::size_t i = 0; i < std::size(reduction_names); ++i)
    if (name == reduction_names[i]) return static_cast<Reduction>(i);
  return std::nullopt;
}

std::vector<SumAlgorithm> sum_algorithms_of(Reduction reduction) {
  using enum SumAlgorithm;
  switch (reduction) {
    case Reduction::allreduce: return {ring, doubling};
    case Reduction::reduce: return {binomial};
    case Reduction::reduce_scatter: break;
  }
  return {ring, halving};
}

int pieces_of(SumAlgorithm algorithm, int size) {
  const bool is_whole = algorithm == SumAlgorithm::doubling || algorithm == SumAlgorithm::binomial;
  return is_whole ? 1 : size;
}

Schedule make(SumAlgorithm algorithm, const SumTask& task, int rank) {
  if (!serves(algorithm, task.reduction))
    throw std::invalid_argument(std::string("algorithm is ") + name(algorithm) +
                                ", in which no partial sums of this reduction travel");
  switch (algorithm) {
    case SumAlgorithm::ring:
      return task.reduction == Reduction::allreduce ? ring_allreduce(task, rank)
                                                    : ring_reduce_scatter(task, rank);
    case SumAlgorithm::doubling: return recursive_doubling_allreduce(task, rank);
    case SumAlgorithm::halving: return recursive_halving_reduce_scatter(task, rank);
    default: return binomial_reduce(task, rank);
  }
}

std::vector<SumRound> sum_work(SumAlgorithm algorithm, Reduction reduction, int size) {
  if (size < 2) return {};
  if (algorithm == SumAlgorithm::two_shot) return two_shots(reduction, size);
  if (!serves(algorithm, reduction)) return {};
  return hops(algorithm, reduction, size);
}

}  // namespace mpress::simulation
