// The algorithms of reductions by name: their schedules where partial sums travel, and how much
// work one is, with a codec in every hop or in two shots.
//
// These names are not of Algorithm (algorithms.hpp), whose numbers statistics keep and of which the
// engine runs any: reductions go in two shots, and nothing here is chosen for a call.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "schedule/schedule.hpp"
#include "simulation/sum_task.hpp"

namespace mpress::simulation {

enum class SumAlgorithm : std::uint8_t {
  two_shot,  ///< the engine's: pieces go to their owners, and sums to all who want them
  ring,      ///< allreduce, reduce_scatter
  doubling,  ///< allreduce
  halving,   ///< reduce_scatter
  binomial,  ///< reduce
  count_
};

inline constexpr const char* sum_algorithm_names[] = {"two-shot", "ring", "doubling", "halving",
                                                      "binomial"};
inline constexpr const char* reduction_names[] = {"allreduce", "reduce", "reduce_scatter"};

inline const char* name(SumAlgorithm algorithm) {
  return sum_algorithm_names[static_cast<std::size_t>(algorithm)];
}

/// Of the one that is called so; empty where none is.
std::optional<SumAlgorithm> sum_algorithm_of(std::string_view name);
std::optional<Reduction> reduction_of(std::string_view name);

/// Those in which partial sums travel.
std::vector<SumAlgorithm> sum_algorithms_of(Reduction reduction);

/// Pieces that an algorithm cuts the vector of so many ranks into.
int pieces_of(SumAlgorithm algorithm, int size);

/// The algorithm has to be of sum_algorithms_of(); else std::invalid_argument, as for what is wrong
/// with the task.
Schedule make(SumAlgorithm algorithm, const SumTask& task, int rank);

/// What the rank that has most to do does in a round, in vectors (what one rank brings): sends or
/// receives; encodes before, and decodes and combines after, at one go.
struct SumRound {
  double moved = 0;
  double encoded = 0;
  double decoded = 0;
  int at_once = 1;  ///< partners

  bool operator==(const SumRound&) const = default;
};

/// All of them, one after another, of a codec in every hop; what an all-gather passes on as it came
/// is encoded once. In two shots, which every reduction has, what a shot encodes or decodes is one
/// go (pipeline/launch_batch.hpp). Nothing for one rank, and for algorithms that do not
/// serve the reduction.
std::vector<SumRound> sum_work(SumAlgorithm algorithm, Reduction reduction, int size);

}  // namespace mpress::simulation
