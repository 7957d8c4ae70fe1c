// Reductions of a neighbourhood along one dimension after another: the all-gather's tree backwards.
//
// Each rank combines what its sources have for it. A *state* is a partial result: of all offsets
// that agree in their first coordinates, by dimensions in some order, what has come along the
// others. It moves by the last of the agreeing coordinates and enters the state that has one
// coordinate less; the state of no coordinate is the result. Where all targets of a rank get the
// same vector (mpress_iso_neighbor_reduce), states whose remaining offsets are alike are one, and
// what comes may enter several: a Moore neighbourhood of d dimensions and radius r takes 2 r d
// vectors, for (2 r + 1)^d - 1 straight ones.
//
// | states   | rounds               | vectors that a rank sends on a torus                        |
// |----------|----------------------|-------------------------------------------------------------|
// | apart    | sum of ceil(C_j / k) | edges other than 0 of the tree of offsets                   |
// | shared   | the same             | distinct pairs of a state and a coordinate other than 0     |
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "schedule/neighbourhoods/neighbourhood.hpp"
#include "schedule/schedule.hpp"

namespace mpress::schedule {

/// What one rank does. A runner keeps a vector for each state that it has anything of, and may not
/// take an empty one for zeros: operations need not have a neutral element.
///
/// 1. entries: own vectors enter their states.
/// 2. For each round: what the transfers carry enters the states that `into` lists; then the merges
///    whose `round` is this one, in their order. Those of round -1 come before the first round. No
///    state changes in a round that sends it.
/// 3. The result is state 0; nothing where `has_result` is false.
struct SumSchedule {
  /// The vector for a neighbour enters a state `times` times, where it is in the list as often and
  /// vectors are all the same.
  struct Entry {
    int neighbour;
    std::uint32_t state;
    int times;
  };
  /// One state enters another of this rank.
  struct Merge {
    int round;
    std::uint32_t from;
    std::uint32_t into;
  };

  /// Blocks are moves: the numbers of a state and a step, the same on all ranks.
  Schedule transfers;
  std::vector<std::uint32_t> state_of;           ///< of each move: what is sent
  std::vector<std::vector<std::uint32_t>> into;  ///< of each move: what it enters here
  std::vector<Entry> entries;
  std::vector<Merge> merges;
  std::uint32_t states = 0;
  bool has_result = false;
};

class NeighbourSums {
 public:
  /// `is_shared`: each rank has one vector for all its targets. The neighbourhood outlives this.
  /// Throws std::invalid_argument where `ports` is below 1.
  NeighbourSums(const Neighbourhood& neighbourhood, bool is_shared, int ports);

  int rounds() const { return rounds_; }
  /// Messages, and vectors in these, that a rank sends on a torus.
  std::size_t messages() const { return exchanges_; }
  std::size_t vectors() const { return moves_.size(); }

  SumSchedule schedule(int rank) const;

 private:
  struct Edge {
    int step;
    std::uint32_t child;
  };
  struct State {
    int level;  ///< how many coordinates agree
    std::vector<Edge> edges;
    std::vector<int> neighbours;  ///< of the last level: whose vectors it begins with
  };
  struct Move {
    std::uint32_t state;
    int step;
    int round;
    std::vector<std::uint32_t> parents;
  };

  std::uint32_t build(std::span<const int> sorted, int level);
  void plan_moves(int ports);

  const Neighbourhood* neighbourhood_;
  const bool is_shared_;
  std::vector<State> states_;      ///< 0: the result; parents before children
  std::vector<Move> moves_;        ///< by their rounds, those of one step together
  std::vector<int> merge_rounds_;  ///< of each level: after which its states enter without moving
  std::size_t exchanges_ = 0;
  int rounds_ = 0;
};

}  // namespace mpress::schedule
