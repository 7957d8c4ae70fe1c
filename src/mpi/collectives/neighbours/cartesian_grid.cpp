#include "mpi/collectives/neighbours/cartesian_grid.hpp"

#include <vector>

namespace mpress::engine {

schedule::Grid grid_of(MPI_Comm comm) {
  int dimensions = 0;
  mpi::calls().Cartdim_get(comm, &dimensions);
  // One more, as MPI may not be given null pointers.
  std::vector<int> sizes(static_cast<std::size_t>(dimensions) + 1);
  std::vector<int> periodic(sizes.size()), coordinates(sizes.size());
  mpi::calls().Cart_get(comm, dimensions, sizes.data(), periodic.data(), coordinates.data());
  sizes.pop_back();
  periodic.pop_back();
  return schedule::Grid(sizes, periodic);
}

}  // namespace mpress::engine
