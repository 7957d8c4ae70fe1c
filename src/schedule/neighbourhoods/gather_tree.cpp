#include "schedule/neighbourhoods/gather_tree.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "schedule/builder.hpp"

namespace mpress::schedule {
namespace {

std::size_t at(int value) { return static_cast<std::size_t>(value); }

/// Distinct values other than 0 of a coordinate.
std::size_t values_of(const Neighbourhood& neighbourhood, int dimension) {
  std::set<int> values;
  for (int i = 0; i < neighbourhood.count(); ++i)
    if (neighbourhood.is_possible(i)) values.insert(neighbourhood.canonical(i)[at(dimension)]);
  return values.size() - values.count(0);
}

/// No order has fewer edges: each offset but that of the rank itself ends one.
std::size_t least_edges(const Neighbourhood& neighbourhood) {
  std::set<std::vector<int>> offsets;
  for (int i = 0; i < neighbourhood.count(); ++i)
    if (neighbourhood.is_possible(i) && !neighbourhood.is_self(i))
      offsets.emplace(neighbourhood.canonical(i).begin(), neighbourhood.canonical(i).end());
  return offsets.size();
}

}  // namespace

GatherTree::GatherTree(const Neighbourhood& neighbourhood, int ports)
    : neighbourhood_(&neighbourhood) {
  std::vector<int> order(at(neighbourhood.dimensions()));
  std::iota(order.begin(), order.end(), 0);
  constexpr std::size_t most_tried = 4;
  if (order.size() > most_tried) {
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return values_of(neighbourhood, a) < values_of(neighbourhood, b);
    });
    build(order);
  } else {
    build(order);
    const std::size_t least = edges_ == 0 ? 0 : least_edges(neighbourhood);
    std::vector<int> best = order;
    std::size_t fewest = edges_;
    while (fewest > least && std::next_permutation(order.begin(), order.end())) {
      build(order);
      if (edges_ < fewest) fewest = edges_, best = order;
    }
    if (best != order_) build(best);
  }
  plan_exchanges(ports);
}

GatherTree::GatherTree(const Neighbourhood& neighbourhood, int ports, std::span<const int> order)
    : neighbourhood_(&neighbourhood) {
  build(order);
  plan_exchanges(ports);
}

void GatherTree::build(std::span<const int> order) {
  const Neighbourhood& all = *neighbourhood_;
  order_.assign(order.begin(), order.end());
  std::vector<int> sorted;
  for (int i = 0; i < all.count(); ++i)
    if (all.is_possible(i)) sorted.push_back(i);
  // From the last dimension of the order to the first: stable, so lexicographic in the end.
  for (auto j = order.rbegin(); j != order.rend(); ++j)
    std::stable_sort(sorted.begin(), sorted.end(), [&](int a, int b) {
      return all.canonical(a)[at(*j)] < all.canonical(b)[at(*j)];
    });
  levels_.assign(1, {{0, 0}});
  edges_ = 0;
  std::vector<std::uint32_t> node_of(sorted.size(), 0);
  for (const int j : order) {
    std::vector<Node> level;
    std::uint32_t parent = 0;
    for (std::size_t k = 0; k < sorted.size(); ++k) {
      const int step = all.canonical(sorted[k])[at(j)];
      const bool is_new = k == 0 || node_of[k] != parent || level.back().step != step;
      parent = node_of[k];
      if (is_new) {
        level.push_back({parent, step});
        edges_ += step != 0;
      }
      node_of[k] = static_cast<std::uint32_t>(level.size() - 1);
    }
    levels_.push_back(std::move(level));
  }
}

void GatherTree::plan_exchanges(int ports) {
  require_at_least("ports", ports, 1);
  for (std::size_t level = 1; level < levels_.size(); ++level) {
    std::map<int, std::vector<std::uint32_t>> by_step;
    for (std::size_t n = 0; n < levels_[level].size(); ++n)
      if (const int step = levels_[level][n].step; step != 0)
        by_step[step].push_back(static_cast<std::uint32_t>(n));
    int number = 0;
    for (auto& [step, nodes] : by_step)
      exchanges_.push_back(
          {static_cast<int>(level), step, rounds_ + number++ / ports, std::move(nodes)});
    rounds_ += divided_up(number, ports);
  }
}

Schedule GatherTree::schedule(int rank) const {
  const Grid& grid = neighbourhood_->grid();
  Builder builder(grid.ranks(), rank);
  const std::size_t depth = order_.size();
  std::vector<int> here(depth);
  grid.coordinates(rank, here);
  // The coordinates of the block's origin that lie behind the node equal this rank's: from the
  // leaves on, does any offset behind it lead to a rank?
  std::vector<std::vector<char>> is_live(depth + 1);
  is_live[depth].assign(levels_[depth].size(), 1);
  for (std::size_t level = depth; level-- > 0;) {
    is_live[level].assign(levels_[level].size(), 0);
    const int j = order_[level];
    for (std::size_t n = 0; n < levels_[level + 1].size(); ++n) {
      const Node& node = levels_[level + 1][n];
      if (is_live[level + 1][n] && grid.moved(j, here[at(j)], node.step) != Grid::none)
        is_live[level][node.parent] = 1;
    }
  }
  // The origin of the block that this rank has at a node; none where no rank is.
  std::vector<std::vector<int>> origins(depth + 1);
  origins[0] = {rank};
  std::size_t e = 0;
  int stride = grid.ranks();
  std::vector<int> strides(depth);
  for (std::size_t j = 0; j < depth; ++j) strides[j] = stride /= grid.size(static_cast<int>(j));
  for (std::size_t level = 1; level <= depth; ++level) {
    const int j = order_[level - 1];
    const int place = here[at(j)];
    const auto rank_at = [&](int coordinate) {
      return rank + (coordinate - place) * strides[at(j)];
    };
    for (const Node& node : levels_[level]) {
      const int parent = origins[level - 1][node.parent];
      const int from = grid.moved(j, place, -std::int64_t{node.step});
      origins[level].push_back(parent == Grid::none || from == Grid::none
                                   ? Grid::none
                                   : parent + (from - place) * strides[at(j)]);
    }
    for (; e < exchanges_.size() && exchanges_[e].level == static_cast<int>(level); ++e) {
      const Exchange& exchange = exchanges_[e];
      if (const int to = grid.moved(j, place, exchange.step); to != Grid::none) {
        for (const std::uint32_t n : exchange.nodes) {
          const int origin = origins[level - 1][levels_[level][n].parent];
          if (origin != Grid::none && is_live[level][n]) builder.block(origin);
        }
        builder.send(rank_at(to), exchange.round);
      }
      if (const int from = grid.moved(j, place, -std::int64_t{exchange.step}); from != Grid::none) {
        for (const std::uint32_t n : exchange.nodes)
          if (origins[level][n] != Grid::none && is_live[level][n])
            builder.block(origins[level][n]);
        builder.receive(rank_at(from), exchange.round);
      }
    }
  }
  return builder.finish(rounds_);
}

Schedule direct_gather(const Neighbourhood& neighbourhood, int rank, int ports) {
  require_at_least("ports", ports, 1);
  const Grid& grid = neighbourhood.grid();
  Builder builder(grid.ranks(), rank);
  std::vector<int> here(at(neighbourhood.dimensions()));
  grid.coordinates(rank, here);
  std::set<std::vector<int>> seen;
  int number = 0;
  for (int i = 0; i < neighbourhood.count(); ++i) {
    const std::span offset = neighbourhood.canonical(i);
    if (!neighbourhood.is_possible(i) || neighbourhood.is_self(i)) continue;
    if (!seen.emplace(offset.begin(), offset.end()).second) continue;
    const int round = number++ / ports;
    if (const int to = grid.neighbour(here, offset); to != Grid::none) {
      builder.block(rank);
      builder.send(to, round);
    }
    if (const int from = grid.neighbour(here, offset, -1); from != Grid::none) {
      builder.block(from);
      builder.receive(from, round);
    }
  }
  return builder.finish(divided_up(number, ports));
}

}  // namespace mpress::schedule
