// Schedules of isomorphic neighbourhoods: every algorithm brings every block, on tori and meshes of
// any size, with duplicates, the rank itself and offsets that lead nowhere in the list, in exactly
// the rounds and blocks that its formulas say.

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "neighbourhood_simulator.hpp"
#include "schedule/neighbourhoods/gather_tree.hpp"
#include "schedule/neighbourhoods/ring.hpp"
#include "schedule/neighbourhoods/routes.hpp"

using namespace mpress::schedule;
using namespace neighbourhood_simulator;

namespace {

std::mt19937 generator(57);

int random_int(int least, int most) {
  return std::uniform_int_distribution<int>(least, most)(generator);
}

std::string text(const Neighbourhood& neighbourhood) {
  std::string text;
  for (int j = 0; j < neighbourhood.dimensions(); ++j)
    text += std::to_string(neighbourhood.grid().size(j)) +
            (neighbourhood.grid().is_periodic(j) ? "p " : " ");
  for (int i = 0; i < neighbourhood.count(); ++i) {
    text += "(";
    for (const int c : neighbourhood.offset(i)) text += std::to_string(c) + ",";
    text += ")";
  }
  return text;
}

void report(const std::string& error, const char* name, const Neighbourhood& neighbourhood) {
  if (error.empty()) return;
  std::fprintf(stderr, "%s of %s: %s\n", name, text(neighbourhood).c_str(), error.c_str());
  ++check::failures;
}

/// The coordinates of all ranks.
std::vector<std::vector<int>> places(const Grid& grid) {
  std::vector<std::vector<int>> all(index(grid.ranks()),
                                    std::vector<int>(index(grid.dimensions())));
  for (int rank = 0; rank < grid.ranks(); ++rank) grid.coordinates(rank, all[index(rank)]);
  return all;
}

std::vector<Wanted> wanted_of_alltoall(const Neighbourhood& neighbourhood) {
  std::vector<Wanted> wanted;
  const auto all = places(neighbourhood.grid());
  for (int rank = 0; rank < neighbourhood.grid().ranks(); ++rank)
    for (int i = 0; i < neighbourhood.count(); ++i)
      if (const int to = neighbourhood.target(all[index(rank)], i); to != Grid::none)
        wanted.push_back({neighbour_block(neighbourhood, rank, i), rank, to});
  return wanted;
}

std::vector<Wanted> wanted_of_allgather(const Neighbourhood& neighbourhood) {
  std::vector<Wanted> wanted = wanted_of_alltoall(neighbourhood);
  for (Wanted& one : wanted) one.block = static_cast<Block>(one.origin);
  return wanted;
}

template <class Make>
Volume check_moves(const char* name, const Neighbourhood& neighbourhood, bool is_gather,
                   Make make) {
  std::vector<Schedule> ranks;
  for (int rank = 0; rank < neighbourhood.grid().ranks(); ++rank) ranks.push_back(make(rank));
  Volume volume;
  const auto origin = [&](Block block) {
    return static_cast<int>(is_gather ? block : block / static_cast<Block>(neighbourhood.count()));
  };
  report(verify(ranks,
                is_gather ? wanted_of_allgather(neighbourhood) : wanted_of_alltoall(neighbourhood),
                origin, volume),
         name, neighbourhood);
  return volume;
}

Volume check_routes(const char* name, const Neighbourhood& neighbourhood, const Routes& routes) {
  return check_moves(name, neighbourhood, false, [&](int rank) { return routes.schedule(rank); });
}

Volume check_sums(const Neighbourhood& neighbourhood, bool is_shared, int ports) {
  const NeighbourSums plan(neighbourhood, is_shared, ports);
  std::vector<SumSchedule> sums;
  for (int rank = 0; rank < neighbourhood.grid().ranks(); ++rank)
    sums.push_back(plan.schedule(rank));
  std::vector<Contributions> results;
  Volume volume;
  std::string error = add_up(sums, is_shared, results, volume);
  const auto all = places(neighbourhood.grid());
  for (int rank = 0; rank < neighbourhood.grid().ranks() && error.empty(); ++rank) {
    Contributions expected;
    for (int i = 0; i < neighbourhood.count(); ++i)
      if (const int from = neighbourhood.source(all[index(rank)], i); from != Grid::none)
        expected.push_back({from, is_shared ? 0 : i});
    std::ranges::sort(expected);
    if (results[index(rank)] != expected) error = "other contributions than the sources'";
  }
  report(error, is_shared ? "shared sums" : "sums", neighbourhood);
  return volume;
}

Neighbourhood random_neighbourhood() {
  static constexpr int sizes_by_weight[] = {1, 1, 2, 2, 2, 3, 3, 4, 5};
  const int dimensions = random_int(0, 4);
  std::vector<int> sizes, periodic;
  for (int j = 0; j < dimensions; ++j) {
    sizes.push_back(sizes_by_weight[random_int(0, 8)]);
    periodic.push_back(random_int(0, 1));
  }
  const int count = random_int(0, 30);
  const bool is_one_sided = random_int(0, 4) == 0;
  std::vector<int> offsets;
  for (int i = 0; i < count; ++i) {
    const bool is_repeated = i > 0 && random_int(0, 9) < 3;
    const int other = i > 0 ? random_int(0, i - 1) : 0;
    for (int j = 0; j < dimensions; ++j) {
      const int reach = random_int(0, 20) == 0 ? 1000000000 : 2 * sizes[index(j)];
      const int c = random_int(0, 2) == 0 ? 0 : random_int(is_one_sided ? 0 : -reach, reach);
      offsets.push_back(is_repeated ? offsets[index(other * dimensions + j)] : c);
    }
  }
  return {Grid(sizes, periodic), count, offsets};
}

void random_cases() {
  for (int test = 0; test < 300; ++test) {
    const Neighbourhood neighbourhood = random_neighbourhood();
    const int ports = random_int(1, 4), base = random_int(2, 4);
    check_routes("direct", neighbourhood, Routes::direct(neighbourhood, ports));
    check_routes("combining", neighbourhood, Routes::combining(neighbourhood, ports));
    check_routes("digits", neighbourhood, Routes::digits(neighbourhood, ports, base));
    check_routes("lines", neighbourhood, Routes::lines(neighbourhood, ports, base));
    check_moves("direct gather", neighbourhood, true,
                [&](int rank) { return direct_gather(neighbourhood, rank, ports); });
    const GatherTree tree(neighbourhood, ports);
    check_moves("gather", neighbourhood, true, [&](int rank) { return tree.schedule(rank); });
    std::vector<int> order(index(neighbourhood.dimensions()));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::shuffle(order, generator);
    const GatherTree other(neighbourhood, ports, order);
    check_moves("gather", neighbourhood, true, [&](int rank) { return other.schedule(rank); });
    CHECK(tree.blocks() <= other.blocks());
    check_sums(neighbourhood, false, ports);
    check_sums(neighbourhood, true, ports);
    if (test % 8 == 0)
      check_moves("ring", neighbourhood, false,
                  [&](int rank) { return ring_alltoall(neighbourhood, rank, base); });
  }
}

int bits(int value) {
  int count = 0;
  for (; value > 0; value /= 2) ++count;
  return count;
}

Neighbourhood on_torus(int dimensions, int size, const std::vector<int>& offsets) {
  const std::vector<int> sizes(index(dimensions), size), periodic(index(dimensions), 1);
  const auto count = offsets.size() / index(dimensions);
  return {Grid(sizes, periodic), static_cast<int>(count), offsets};
}

/// What each rank of a torus sends.
struct Row {
  const char* name;
  int dimensions;
  int reach;
  std::vector<int> offsets;
  std::size_t count, rounds, digit_rounds, blocks, digit_blocks, gather_blocks;
};

std::vector<int> cube(int dimensions, int least, int most) {
  std::vector<int> offsets, offset(index(dimensions), least);
  for (bool is_over = false; !is_over;) {
    if (std::ranges::any_of(offset, [](int c) { return c != 0; }))
      offsets.insert(offsets.end(), offset.begin(), offset.end());
    is_over = true;
    for (std::size_t j = offset.size(); j-- > 0 && is_over;) {
      is_over = offset[j] == most;
      offset[j] = is_over ? least : offset[j] + 1;
    }
  }
  return offsets;
}

/// The rounds and blocks of known neighbourhoods.
void known_volumes() {
  const std::vector<Row> rows = {
      {"Moore d2 r1", 2, 1, moore(2, 1), 8, 4, 4, 12, 12, 8},
      {"Moore d2 r2", 2, 2, moore(2, 2), 24, 8, 8, 40, 40, 24},
      {"Moore d2 r3", 2, 3, moore(2, 3), 48, 12, 8, 84, 112, 48},
      {"Moore d3 r1", 3, 1, moore(3, 1), 26, 6, 6, 54, 54, 26},
      {"Moore d3 r2", 3, 2, moore(3, 2), 124, 12, 12, 300, 300, 124},
      {"Moore d3 r3", 3, 3, moore(3, 3), 342, 18, 12, 882, 1176, 342},
      {"Moore d4 r1", 4, 1, moore(4, 1), 80, 8, 8, 216, 216, 80},
      {"Moore d4 r2", 4, 2, moore(4, 2), 624, 16, 16, 2000, 2000, 624},
      {"Moore d5 r1", 5, 1, moore(5, 1), 242, 10, 10, 810, 810, 242},
      {"von Neumann d2 r1", 2, 1, von_neumann(2, 1), 4, 4, 4, 4, 4, 4},
      {"von Neumann d2 r2", 2, 2, von_neumann(2, 2), 12, 8, 8, 16, 16, 12},
      {"von Neumann d2 r3", 2, 3, von_neumann(2, 3), 24, 12, 8, 36, 0, 24},
      {"von Neumann d3 r1", 3, 1, von_neumann(3, 1), 6, 6, 6, 6, 6, 6},
      {"von Neumann d3 r2", 3, 2, von_neumann(3, 2), 24, 12, 12, 36, 36, 24},
      {"von Neumann d3 r3", 3, 3, von_neumann(3, 3), 62, 18, 12, 114, 0, 62},
      {"Moore d2 r3 without r1", 2, 3, moore(2, 3, 1), 40, 12, 8, 72, 0, 42},
      {"Moore d2 r3 without r2", 2, 3, moore(2, 3, 2), 24, 12, 8, 44, 0, 28},
      {"Moore d3 r2 without r1", 3, 2, moore(3, 2, 1), 98, 12, 12, 246, 246, 106},
      {"cube n4 d2", 2, 2, cube(2, -1, 2), 15, 6, 6, 24, 24, 15},
      {"cube n4 d3", 3, 2, cube(3, -1, 2), 63, 9, 9, 144, 144, 63},
      {"cube n4 d4", 4, 2, cube(4, -1, 2), 255, 12, 12, 768, 768, 255},
      {"cube n5 d2", 2, 3, cube(2, -1, 3), 24, 8, 6, 40, 0, 24},
      {"cube n5 d3", 3, 3, cube(3, -1, 3), 124, 12, 9, 300, 0, 124},
      {"cube n5 d4", 4, 3, cube(4, -1, 3), 624, 16, 12, 2000, 0, 624},
  };
  for (const Row& row : rows) {
    const Neighbourhood neighbourhood = on_torus(row.dimensions, 2 * row.reach + 1, row.offsets);
    const auto ranks = index(neighbourhood.grid().ranks());
    CHECK(index(neighbourhood.count()) == row.count);
    const Routes direct = Routes::direct(neighbourhood, 1);
    CHECK(index(direct.rounds()) == row.count && direct.blocks() == row.count);
    CHECK(index(Routes::direct(neighbourhood, 5).rounds()) == (row.count + 4) / 5);
    const Routes combining = Routes::combining(neighbourhood, 1);
    CHECK(index(combining.rounds()) == row.rounds && combining.messages() == row.rounds);
    CHECK(combining.blocks() == row.blocks);
    CHECK(Routes::combining(neighbourhood, neighbourhood.count()).rounds() == row.dimensions);
    const Routes digits = Routes::digits(neighbourhood, 1, 2);
    CHECK(index(digits.rounds()) == row.digit_rounds);
    if (row.digit_blocks != 0) CHECK(digits.blocks() == row.digit_blocks);
    const GatherTree tree(neighbourhood, 1);
    CHECK(index(tree.rounds()) == row.rounds && tree.blocks() == row.gather_blocks);
    if (ranks > 400) continue;
    // What ranks do is what the routes say of one.
    CHECK(check_routes(row.name, neighbourhood, combining) ==
          (Volume{combining.rounds(), ranks * row.rounds, ranks * row.blocks}));
    CHECK(check_routes(row.name, neighbourhood, digits).blocks == ranks * digits.blocks());
    CHECK(check_moves(row.name, neighbourhood, true, [&](int r) { return tree.schedule(r); }) ==
          (Volume{tree.rounds(), ranks * row.rounds, ranks * row.gather_blocks}));
  }
}

void known_sums() {
  const auto vectors = [](const Neighbourhood& neighbourhood, bool is_shared) {
    const Volume volume = check_sums(neighbourhood, is_shared, 1);
    CHECK(volume.rounds == NeighbourSums(neighbourhood, is_shared, 1).rounds());
    return volume.blocks / index(neighbourhood.grid().ranks());
  };
  CHECK(vectors(on_torus(3, 3, moore(3, 1)), false) == 26);
  CHECK(vectors(on_torus(3, 3, moore(3, 1)), true) == 6);
  CHECK(vectors(on_torus(3, 3, moore(3, 1, -1)), true) == 6);
  CHECK(NeighbourSums(on_torus(4, 5, moore(4, 2)), true, 1).vectors() == 16);
  CHECK(NeighbourSums(on_torus(4, 5, moore(4, 2)), false, 1).vectors() == 624);
  CHECK(vectors(on_torus(2, 7, moore(2, 3)), false) == 48);
}

/// Bruck's algorithm takes the fewest rounds there are on one-sided lines, also of powers of two.
void line_lists() {
  for (const int count : {1, 2, 3, 4, 7, 8, 16, 31}) {
    std::vector<int> offsets;
    for (int i = 1; i <= count; ++i) offsets.insert(offsets.end(), {2 * i, -i});
    for (const int periodic : {0, 1}) {
      const Neighbourhood line(
          Grid(std::vector{2 * count + 1, count + 1}, std::vector{periodic, periodic}), count,
          offsets);
      const Routes routes = Routes::lines(line, 1, 2);
      CHECK(routes.rounds() == bits(count));
      check_routes("lines", line, routes);
    }
  }
  // Three ports and base 4.
  std::vector<int> offsets(15);
  std::iota(offsets.begin(), offsets.end(), 1);
  const Neighbourhood line = on_torus(1, 16, offsets);
  CHECK(Routes::lines(line, 3, 4).rounds() == 2);
  check_routes("lines", line, Routes::lines(line, 3, 4));
  CHECK(check_moves("ring", line, false, [&](int r) { return ring_alltoall(line, r); }).rounds ==
        4);
}

/// The paper's form in one ring, of Moore neighbourhoods on the grids of its cluster and on cubes:
/// rounds, and blocks of all ranks.
void rings() {
  const auto check = [](const std::vector<int>& sizes, int periodic, int rounds,
                        std::size_t blocks) {
    const std::vector<int> offsets = moore(static_cast<int>(sizes.size()), 1);
    const auto count = static_cast<int>(offsets.size() / sizes.size());
    const Neighbourhood list(Grid(sizes, std::vector<int>(sizes.size(), periodic)), count, offsets);
    const Volume volume =
        check_moves("ring", list, false, [&](int rank) { return ring_alltoall(list, rank); });
    CHECK(volume.rounds == rounds && volume.blocks == blocks);
  };
  check({3, 3}, 1, 4, 9 * 13);
  check({6, 5}, 1, 5, 546);      // 18.2 a rank
  check({6, 5}, 0, 5, 405);      // 13.5
  check({24, 20}, 1, 9, 16344);  // 34.05
  check({4, 4, 4}, 1, 6, 64 * 81);
}

void ten_thousand_ranks() {
  for (const int periodic : {0, 1}) {
    const Neighbourhood plane(Grid(std::vector{100, 100}, std::vector{periodic, 1}), 24,
                              moore(2, 2));
    check_routes("combining", plane, Routes::combining(plane, 4));
    const GatherTree tree(plane, 1);
    check_moves("gather", plane, true, [&](int rank) { return tree.schedule(rank); });
    const Neighbourhood cube(Grid(std::vector{20, 20, 25}, std::vector{1, periodic, 0}), 6,
                             von_neumann(3, 1));
    check_routes("digits", cube, Routes::digits(cube, 2, 2));
    check_sums(cube, true, 1);
  }
}

void grids() {
  const Grid grid(std::vector{4, 5, 2}, std::vector{1, 0, 1});
  std::vector<int> a(3), offset(3);
  for (int from = 0; from < grid.ranks(); ++from)
    for (int to = 0; to < grid.ranks(); ++to) {
      grid.coordinates(from, a);
      grid.offset(from, to, offset);
      CHECK(grid.neighbour(a, offset) == to);
      CHECK(offset[0] > -2 && offset[0] <= 2 && offset[2] >= 0);
    }
  grid.coordinates(0, a);
  CHECK(grid.neighbour(a, std::vector{-1, 0, 7}) == grid.neighbour(a, std::vector{3, 0, 1}));
  CHECK(grid.neighbour(a, std::vector{0, -1, 0}) == Grid::none);
  CHECK(grid.neighbour(a, std::vector{0, 5, 0}) == Grid::none);
  CHECK(grid.neighbour(a, std::vector{-2147483647 - 1, 0, 2147483647}, -1) ==
        grid.neighbour(a, std::vector{0, 0, 1}));
  CHECK(Neighbourhood(grid, 1, std::vector{1, 0, 0}).hash() !=
        Neighbourhood(grid, 1, std::vector{0, 0, 1}).hash());
}

/// Against all offsets of the cube, one after another.
void shells() {
  for (int d = 0; d < 5; ++d)
    for (int radius = 0; radius < 4; ++radius)
      for (int inner = -1; inner <= radius; ++inner)
        for (const bool is_sum : {false, true}) {
          std::vector<int> expected, offset(static_cast<std::size_t>(d));
          const int side = 2 * radius + 1;
          int cube = 1;
          for (int j = 0; j < d; ++j) cube *= side;
          for (int number = 0; number < cube; ++number) {
            int norm = 0, rest = number;
            for (std::size_t j = offset.size(); j-- > 0; rest /= side) {
              offset[j] = rest % side - radius;
              norm = is_sum ? norm + std::abs(offset[j]) : std::max(norm, std::abs(offset[j]));
            }
            if (norm > inner && norm <= radius)
              expected.insert(expected.end(), offset.begin(), offset.end());
          }
          CHECK((is_sum ? von_neumann : moore)(d, radius, inner, INT_MAX) == expected);
          if (d > 0) {
            const int number = (is_sum ? von_neumann_count : moore_count)(d, radius, inner);
            CHECK(number * d == static_cast<int>(expected.size()));
          }
        }
  const auto is_refused = [](auto count, int dimensions, int radius, int inner) {
    try {
      return count(dimensions, radius, inner) < 0;
    } catch (const std::invalid_argument&) {
      return true;
    }
  };
  CHECK(is_refused(moore_count, 60, 60, 0) && is_refused(von_neumann_count, 60, 60, 0));
  CHECK(is_refused(von_neumann_count, 3, 1400000, 1399999));
  CHECK(von_neumann_count(300, 1) == 600 && moore_count(2, 50000, 49999) == 400000);
}

}  // namespace

int main() {
  grids();
  shells();
  known_volumes();
  known_sums();
  line_lists();
  rings();
  random_cases();
  ten_thousand_ranks();
  return check::failures == 0 ? 0 : 1;
}
