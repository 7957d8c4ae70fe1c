// A distributed graph of which the program has promised, by the key mpress_isomorphic of an
// MPI_Info, that all processes of a grid have the same relative neighbours (section 8 of Traeff et
// al., EuroMPI 2015). Then MPI's calls on it may be served by message combining.
#pragma once

#include <memory>
#include <vector>

#include "mpi/collectives/neighbours/program_exchange.hpp"
#include "mpi/collectives/operands.hpp"
#include "mpi/collectives/route.hpp"
#include "mpi/objects/comm_info.hpp"

namespace mpress::engine {

/// The neighbours of one process, by their number in the list that all processes have.
struct IsomorphicGraph final : mpi::GraphNote {
  std::shared_ptr<const NeighbourPlans> plans;
  /// Where the program has that neighbour in its own lists; -1: it is beyond a border.
  std::vector<int> destinations;
  std::vector<int> sources;
  bool has_borders = false;  ///< the grid
};

/// Behind a call by which MPI made a graph of the processes of `parent`: collective over them,
/// whatever `info` each of them has given. Where they have given the promise, and kept it, the
/// communicator notes that. Returns an error code of MPI's otherwise, the same on all, which has
/// been raised on `parent`; then `created` is freed.
int note_promise(Job& job, MPI_Comm parent, MPI_Info info, MPI_Comm* created);

/// Has any communicator of this process such a graph?
bool has_isomorphic_graphs();

/// The communicator of a call where it has such a graph; null: it has none, or MPI finds an error.
std::shared_ptr<mpi::CommInfo> isomorphic_comm(const Operands& operands);

/// What such a call exchanges.
ProgramExchange exchange_on_graph(const Collective& call, const Operands& operands,
                                  const mpi::CommInfo& comm);

}  // namespace mpress::engine
