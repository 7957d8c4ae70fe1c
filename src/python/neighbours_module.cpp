// The schedules of neighbourhoods, for `mpress bench iso`.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <limits>
#include <string>
#include <vector>

#include "python/arguments.hpp"
#include "schedule/neighbourhoods/neighbourhood.hpp"
#include "schedule/neighbourhoods/passages.hpp"
#include "schedule/neighbourhoods/ring.hpp"
#include "schedule/neighbourhoods/routes.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace mpress::python {
namespace {

using schedule::Neighbourhood;
using schedule::Routes;

constexpr int all_ports = std::numeric_limits<int>::max();

Routes routes_of(const std::string& algorithm, const Neighbourhood& list, int ports) {
  if (algorithm == "direct") return Routes::direct(list, ports);
  if (algorithm == "combining") return Routes::combining(list, ports);
  if (algorithm == "digits") return Routes::digits(list, ports, 2);
  if (algorithm == "lines") return Routes::lines(list, ports, 2);
  throw nb::value_error(
      ("algorithm is '" + algorithm + "'; expected direct, combining, digits, lines or ring")
          .c_str());
}

schedule::Schedule schedule_of(const std::string& algorithm, const Neighbourhood& list, int rank) {
  if (algorithm == "ring") return schedule::ring_alltoall(list, rank, 2);
  return routes_of(algorithm, list, all_ports).schedule(rank);
}

nb::tuple neighbour_alltoall(const std::string& algorithm, const std::vector<int>& sizes,
                             const std::vector<int>& periodic, const std::vector<int>& offsets,
                             int count, int rank) {
  const schedule::Grid grid(sizes, periodic);
  if (rank < 0 || rank >= grid.ranks()) throw nb::value_error("rank: expected one of the grid's");
  std::vector<int> coordinates(sizes.size());
  grid.coordinates(rank, coordinates);
  // Timed is all that a process does before its first call.
  const auto begin = std::chrono::steady_clock::now();
  const Neighbourhood list(grid, count, offsets);
  const schedule::Schedule made = schedule_of(algorithm, list, rank);
  const auto passages = schedule::Passages::of_alltoall(list, made, coordinates);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::size_t blocks = 0;
  for (const schedule::Transfer& send : made.sends) blocks += send.count;
  const int rounds = algorithm == "ring" ? made.rounds : routes_of(algorithm, list, 1).rounds();
  return nb::make_tuple(rounds, made.sends.size(), blocks, took.count());
}

}  // namespace

void define_neighbours(nb::module_& m) {
  m.def("neighbour_alltoall", &neighbour_alltoall, "algorithm"_a, "sizes"_a, "periodic"_a,
        "offsets"_a, "count"_a, "rank"_a,
        "A rank's schedule of the all-to-all of a neighbourhood of `count` offsets, one behind the "
        "other: the rounds that it takes where a process sends one message at a time, the messages "
        "that the rank sends, the blocks in them, and the seconds in which it was made.");
}

}  // namespace mpress::python
