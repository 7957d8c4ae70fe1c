#include "schedule/neighbourhoods/neighbour_sums.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "schedule/builder.hpp"

namespace mpress::schedule {
namespace {

std::size_t at(std::int64_t value) { return static_cast<std::size_t>(value); }

}  // namespace

NeighbourSums::NeighbourSums(const Neighbourhood& neighbourhood, bool is_shared, int ports)
    : neighbourhood_(&neighbourhood), is_shared_(is_shared) {
  require_at_least("ports", ports, 1);
  std::vector<int> sorted;
  for (int i = 0; i < neighbourhood.count(); ++i)
    if (neighbourhood.is_possible(i)) sorted.push_back(i);
  std::stable_sort(sorted.begin(), sorted.end(), [&](int a, int b) {
    return std::ranges::lexicographical_compare(neighbourhood.canonical(a),
                                                neighbourhood.canonical(b));
  });
  build(sorted, 0);
  // Children were made before their parents.
  const auto last = static_cast<std::uint32_t>(states_.size() - 1);
  std::ranges::reverse(states_);
  for (State& state : states_)
    for (Edge& edge : state.edges) edge.child = last - edge.child;
  plan_moves(ports);
}

/// Of offsets that agree in `level` coordinates: the state, which may be there already.
std::uint32_t NeighbourSums::build(std::span<const int> sorted, int level) {
  State state{level, {}, {}};
  if (level == neighbourhood_->dimensions()) {
    state.neighbours.assign(sorted.begin(), sorted.end());
  } else {
    const auto step_of = [&](int i) { return neighbourhood_->canonical(i)[at(level)]; };
    for (std::size_t first = 0, end = 0; first < sorted.size(); first = end) {
      const int step = step_of(sorted[first]);
      while (end < sorted.size() && step_of(sorted[end]) == step) ++end;
      state.edges.push_back({step, build(sorted.subspan(first, end - first), level + 1)});
    }
  }
  const auto is_alike = [&](const State& other) {
    // The vectors of all neighbours are the same, so how many there are is what counts.
    return other.level == level && other.neighbours.size() == state.neighbours.size() &&
           std::ranges::equal(other.edges, state.edges, [](const Edge& a, const Edge& b) {
             return a.step == b.step && a.child == b.child;
           });
  };
  if (is_shared_)
    if (const auto found = std::ranges::find_if(states_, is_alike); found != states_.end())
      return static_cast<std::uint32_t>(found - states_.begin());
  states_.push_back(std::move(state));
  return static_cast<std::uint32_t>(states_.size() - 1);
}

void NeighbourSums::plan_moves(int ports) {
  const int depth = neighbourhood_->dimensions();
  merge_rounds_.assign(at(depth) + 1, -1);
  for (int level = depth; level > 0; --level) {
    std::map<std::pair<int, std::uint32_t>, std::vector<std::uint32_t>> moves;
    for (std::uint32_t parent = 0; parent < states_.size(); ++parent)
      if (states_[parent].level == level - 1)
        for (const Edge& edge : states_[parent].edges)
          if (edge.step != 0) moves[{edge.step, edge.child}].push_back(parent);
    int number = -1, step = 0;
    for (auto& [move, parents] : moves) {
      if (number < 0 || move.first != step) ++number;
      step = move.first;
      moves_.push_back({move.second, step, rounds_ + number / ports, std::move(parents)});
    }
    rounds_ += divided_up(number + 1, ports);
    exchanges_ += at(number + 1);
    merge_rounds_[at(level)] = rounds_ - 1;
  }
}

SumSchedule NeighbourSums::schedule(int rank) const {
  const Neighbourhood& neighbourhood = *neighbourhood_;
  const Grid& grid = neighbourhood.grid();
  std::vector<int> here(at(neighbourhood.dimensions()));
  grid.coordinates(rank, here);
  const auto leads_on = [&](int dimension, std::int64_t by) {
    return grid.moved(dimension, here[at(dimension)], by) != Grid::none;
  };
  // Coordinates that have not moved yet equal those of the rank that has the result, less the
  // state's: is there one? Those that have equal those of the origins: is there any? No dimension
  // asks for another's coordinate, so the ends of a move find the same.
  std::vector<char> is_needed(states_.size(), 0), is_filled(states_.size(), 0);
  is_needed[0] = 1;
  for (std::size_t s = 0; s < states_.size(); ++s)
    for (const Edge& edge : states_[s].edges)
      if (is_needed[s] && leads_on(states_[s].level, edge.step)) is_needed[edge.child] = 1;
  for (std::size_t s = states_.size(); s-- > 0;) {
    const State& state = states_[s];
    is_filled[s] = state.level == neighbourhood.dimensions() && !state.neighbours.empty();
    for (const Edge& edge : state.edges)
      if (is_filled[edge.child] && leads_on(state.level, -std::int64_t{edge.step}))
        is_filled[s] = 1;
  }

  SumSchedule sum;
  sum.states = static_cast<std::uint32_t>(states_.size());
  sum.has_result = is_filled[0] != 0;
  sum.into.resize(moves_.size());
  for (const Move& move : moves_) sum.state_of.push_back(move.state);
  for (std::uint32_t s = 0; s < states_.size(); ++s) {
    const std::vector<int>& neighbours = states_[s].neighbours;
    if (!is_needed[s] || neighbours.empty()) continue;
    if (is_shared_) {
      sum.entries.push_back({neighbours.front(), s, static_cast<int>(neighbours.size())});
    } else {
      for (const int neighbour : neighbours) sum.entries.push_back({neighbour, s, 1});
    }
  }
  for (int level = neighbourhood.dimensions(); level > 0; --level)
    for (std::uint32_t s = 0; s < states_.size(); ++s)
      if (states_[s].level == level - 1 && is_needed[s])
        for (const Edge& edge : states_[s].edges)
          if (edge.step == 0 && is_filled[edge.child])
            sum.merges.push_back({merge_rounds_[at(level)], edge.child, s});

  Builder builder(grid.ranks(), rank);
  std::vector<int> hop(here.size());
  for (std::size_t first = 0, end = 0; first < moves_.size(); first = end) {
    const Move& one = moves_[first];
    const int dimension = states_[one.state].level - 1;
    const auto is_together = [&](const Move& other) {
      return other.step == one.step && states_[other.state].level == dimension + 1;
    };
    while (end < moves_.size() && is_together(moves_[end])) ++end;
    hop[at(dimension)] = one.step;
    const auto is_sent = [&](const Move& move) {
      return is_filled[move.state] &&
             std::ranges::any_of(move.parents, [&](auto parent) { return is_needed[parent] != 0; });
    };
    if (const int to = grid.neighbour(here, hop); to != Grid::none) {
      for (std::size_t m = first; m < end; ++m)
        if (is_sent(moves_[m])) builder.block(static_cast<Block>(m));
      builder.send(to, one.round);
    }
    if (const int from = grid.neighbour(here, hop, -1); from != Grid::none) {
      for (std::size_t m = first; m < end; ++m) {
        if (!is_sent(moves_[m])) continue;
        builder.block(static_cast<Block>(m));
        for (const std::uint32_t parent : moves_[m].parents)
          if (is_needed[parent]) sum.into[m].push_back(parent);
      }
      builder.combine(from, one.round);
    }
    hop[at(dimension)] = 0;
  }
  sum.transfers = builder.finish(rounds_);
  return sum;
}

}  // namespace mpress::schedule
