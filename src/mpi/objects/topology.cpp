#include "mpi/objects/topology.hpp"

#include <algorithm>
#include <numeric>

#include "mpi/error_handlers.hpp"

namespace mpress::mpi {
namespace {

/// The two neighbours of each dimension, at -1 and at +1.
bool read_grid(MPI_Comm comm, Topology& topology) {
  int dimensions = 0;
  if (calls().Cartdim_get(comm, &dimensions) != MPI_SUCCESS) return false;
  for (int j = 0; j < dimensions; ++j) {
    int before = MPI_PROC_NULL;
    int behind = MPI_PROC_NULL;
    if (calls().Cart_shift(comm, j, 1, &before, &behind) != MPI_SUCCESS) return false;
    topology.sources.insert(topology.sources.end(), {before, behind});
    topology.arrival.insert(topology.arrival.end(), {2 * j + 1, 2 * j});
  }
  topology.destinations = topology.sources;
  return true;
}

bool read_graph(MPI_Comm comm, int rank, Topology& topology) {
  int count = 0;
  if (calls().Graph_neighbors_count(comm, rank, &count) != MPI_SUCCESS) return false;
  topology.sources.resize(static_cast<std::size_t>(count));
  if (calls().Graph_neighbors(comm, rank, count, topology.sources.data()) != MPI_SUCCESS) {
    return false;
  }
  topology.destinations = topology.sources;
  return true;
}

bool read_distributed_graph(MPI_Comm comm, Topology& topology) {
  int sources = 0;
  int destinations = 0;
  int is_weighted = 0;
  if (calls().Dist_graph_neighbors_count(comm, &sources, &destinations, &is_weighted) !=
      MPI_SUCCESS) {
    return false;
  }
  topology.sources.resize(static_cast<std::size_t>(sources));
  topology.destinations.resize(static_cast<std::size_t>(destinations));
  std::vector<int> source_weights(topology.sources.size());
  std::vector<int> destination_weights(topology.destinations.size());
  return calls().Dist_graph_neighbors(comm, sources, topology.sources.data(), source_weights.data(),
                                      destinations, topology.destinations.data(),
                                      destination_weights.data()) == MPI_SUCCESS;
}

bool read(MPI_Comm comm, int rank, bool is_distributed_graph, Topology& topology) {
  if (is_distributed_graph) return read_distributed_graph(comm, topology);
  int kind = MPI_UNDEFINED;
  if (calls().Topo_test(comm, &kind) != MPI_SUCCESS) return false;
  if (kind == MPI_CART) return read_grid(comm, topology);
  if (kind == MPI_GRAPH) return read_graph(comm, rank, topology);
  return kind == MPI_DIST_GRAPH && read_distributed_graph(comm, topology);
}

}  // namespace

std::unique_ptr<const Topology> read_topology(MPI_Comm comm, bool is_distributed_graph) {
  const HeldError error;  // the program's call has its own
  auto topology = std::make_unique<Topology>();
  int rank = MPI_PROC_NULL;
  calls().Comm_rank(comm, &rank);
  if (!read(comm, rank, is_distributed_graph, *topology)) return nullptr;
  if (topology->arrival.empty()) {
    topology->arrival.resize(topology->sources.size());
    std::iota(topology->arrival.begin(), topology->arrival.end(), 0);
  }
  std::ranges::replace(topology->sources, MPI_PROC_NULL, Topology::none);
  std::ranges::replace(topology->destinations, MPI_PROC_NULL, Topology::none);
  topology->has_borders = std::ranges::count(topology->sources, Topology::none) > 0;
  auto from = topology->arrival.begin();
  for (std::size_t i = 0; i < topology->destinations.size(); ++i) {
    if (topology->destinations[i] != rank) continue;
    from = std::find_if(from, topology->arrival.end(), [&](int place) {
      return topology->sources[static_cast<std::size_t>(place)] == rank;
    });
    if (from == topology->arrival.end()) break;
    topology->own.emplace_back(static_cast<int>(i), *from++);
  }
  return topology;
}

}  // namespace mpress::mpi
