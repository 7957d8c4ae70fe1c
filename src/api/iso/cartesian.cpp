#include "api/iso/cartesian.hpp"

#include <mpress/iso.h>

#include <string>
#include <utility>

#include "api/entries.hpp"
#include "mpi/collectives/neighbours/cartesian_grid.hpp"

namespace mpress::api {

int raise(MPI_Comm comm, Wrong wrong) {
  if (!wrong || wrong.is_raised) return wrong.code;
  return raise(comm, wrong.code, std::move(wrong.text));
}

int raise_no_memory(MPI_Comm comm) {
  try {
    return raise(comm, MPI_ERR_NO_MEM, "the host's memory ran out");
  } catch (const std::bad_alloc&) {
    mpi::calls().Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_NO_MEM);
    return MPI_ERR_NO_MEM;
  }
}

Wrong is_null(const char* name) { return {MPI_ERR_ARG, std::string(name) + " is null"}; }

Wrong is_negative(const char* name, int given) {
  return {MPI_ERR_ARG, std::string(name) + " is " + std::to_string(given) + "; expected 0 or more"};
}

Wrong open_call(MPI_Comm comm) {
  set_error_text({});
  if (!is_running()) return {MPI_ERR_OTHER, "MPI does not run"};
  if (comm == MPI_COMM_NULL) return {MPI_ERR_COMM, "the communicator is MPI_COMM_NULL"};
  return {};
}

Wrong read_cartesian(MPI_Comm comm, Cartesian& cartesian) {
  if (Wrong wrong = open_call(comm)) return wrong;
  const mpi::Calls& mpi = mpi::calls();
  constexpr int untold = -12345;
  int topology = untold;
  Wrong wrong = asked(
      "communicator", [&] { return mpi.Topo_test(comm, &topology); },
      [&] { return topology != untold; });
  if (wrong) return wrong;
  if (topology != MPI_CART) {
    return {MPI_ERR_TOPOLOGY, "the communicator is not Cartesian (MPI_Cart_create)"};
  }
  cartesian.grid = engine::grid_of(comm);
  mpi.Comm_rank(comm, &cartesian.rank);
  cartesian.coordinates.resize(static_cast<std::size_t>(cartesian.grid.dimensions()));
  cartesian.grid.coordinates(cartesian.rank, cartesian.coordinates);
  return {};
}

namespace {

/// Runs `body` with the grid of `comm`, and raises what it finds wrong.
template <typename Body>
int on_grid(MPI_Comm comm, Body body) {
  return guarded(comm, [&] {
    Cartesian cartesian;
    Wrong wrong = read_cartesian(comm, cartesian);
    if (!wrong) wrong = body(cartesian);
    return raise(comm, std::move(wrong));
  });
}

/// Is this an array that has to have elements, and is null?
bool is_missing(const Cartesian& cartesian, const int* array) {
  return !array && cartesian.grid.dimensions() > 0;
}

std::span<const int> tuple(const Cartesian& cartesian, const int* relative) {
  return {relative, static_cast<std::size_t>(cartesian.grid.dimensions())};
}

}  // namespace
}  // namespace mpress::api

using namespace mpress;
using api::Cartesian;
using api::Wrong;

extern "C" int mpress_cart_relative_rank(MPI_Comm cartcomm, const int relative[], int* rank) {
  return api::on_grid(cartcomm, [&](const Cartesian& cartesian) -> Wrong {
    if (api::is_missing(cartesian, relative)) return api::is_null("relative");
    if (!rank) return api::is_null("rank");
    *rank = api::rank_or_null(
        cartesian.grid.neighbour(cartesian.coordinates, api::tuple(cartesian, relative)));
    return {};
  });
}

extern "C" int mpress_cart_relative_coord(MPI_Comm cartcomm, int rank, int relative[]) {
  return api::on_grid(cartcomm, [&](const Cartesian& cartesian) -> Wrong {
    const schedule::Grid& grid = cartesian.grid;
    if (rank < 0 || rank >= grid.ranks()) {
      return {MPI_ERR_RANK, "rank is " + std::to_string(rank) + "; expected 0 to " +
                                std::to_string(grid.ranks() - 1)};
    }
    if (api::is_missing(cartesian, relative)) return api::is_null("relative");
    grid.offset(cartesian.rank, rank, {relative, static_cast<std::size_t>(grid.dimensions())});
    return {};
  });
}

extern "C" int mpress_cart_relative_shift(MPI_Comm cartcomm, const int relative[], int* source,
                                          int* target) {
  return api::on_grid(cartcomm, [&](const Cartesian& cartesian) -> Wrong {
    if (api::is_missing(cartesian, relative)) return api::is_null("relative");
    if (!source) return api::is_null("source");
    if (!target) return api::is_null("target");
    const auto offset = api::tuple(cartesian, relative);
    *source = api::rank_or_null(cartesian.grid.neighbour(cartesian.coordinates, offset, -1));
    *target = api::rank_or_null(cartesian.grid.neighbour(cartesian.coordinates, offset));
    return {};
  });
}
