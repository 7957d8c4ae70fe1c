#include "bench/operations.hpp"

namespace mpress::bench {

// MPI's own calls have their other names: nothing that stands in for MPI gets to see them.

int create(const Creation& c, MPI_Comm* made) {
  switch (c.kind) {
    case Creation::cart:
      return PMPI_Cart_create(*c.comm, c.dimensions, c.sizes, c.periodic, 0, made);
    case Creation::iso:
    case Creation::attribute:
      return mpress_iso_neighborhood_create_with_info(*c.comm, c.count, c.offsets, *c.info, made);
    case Creation::adjacent:
      return PMPI_Dist_graph_create_adjacent(*c.comm, c.sources_count, c.sources, MPI_UNWEIGHTED,
                                             c.targets_count, c.targets, MPI_UNWEIGHTED,
                                             MPI_INFO_NULL, 0, made);
    case Creation::graph: {
      int rank = 0;
      PMPI_Comm_rank(*c.comm, &rank);
      return PMPI_Dist_graph_create(*c.comm, 1, &rank, &c.targets_count, c.targets, MPI_UNWEIGHTED,
                                    MPI_INFO_NULL, 0, made);
    }
    case Creation::duplicate: return PMPI_Comm_dup(*c.comm, made);
    default: return MPI_ERR_ARG;
  }
}

int exchange(const Exchange& e, const MPI_Comm& comm) {
  const auto counts = [](const Blocks& b) { return static_cast<const MPI_Count*>(b.counts); };
  const auto ints = [](const void* array) { return static_cast<const int*>(array); };
  const auto bytes = [](const Blocks& b) { return static_cast<const MPI_Aint*>(b.displacements); };
  const Blocks& s = e.sent;
  const Blocks& r = e.received;
  switch (e.kind) {
    case Exchange::iso:
      return mpress_iso_neighbor_alltoallw(s.buffer, counts(s), bytes(s), s.types, r.buffer,
                                           counts(r), bytes(r), r.types, comm, e.call);
    case Exchange::started: {
      const int code = mpress_start(e.request);
      return code != MPI_SUCCESS ? code : mpress_wait(e.request, MPI_STATUS_IGNORE);
    }
    case Exchange::neighbours:
      return PMPI_Neighbor_alltoallw(s.buffer, ints(s.counts), bytes(s), s.types, r.buffer,
                                     ints(r.counts), bytes(r), r.types, comm);
    case Exchange::global:
      return PMPI_Alltoallv(s.buffer, ints(s.counts), ints(s.displacements), s.types[0], r.buffer,
                            ints(r.counts), ints(r.displacements), r.types[0], comm);
    default: return MPI_ERR_ARG;
  }
}

}  // namespace mpress::bench
