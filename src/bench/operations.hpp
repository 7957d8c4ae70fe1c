// What `mpress bench iso` measures, as its Python side describes it: python/mpress/bench/loops.py
// has the same structs. Handles are behind pointers, so their sizes are no matter.
#pragma once

#include <mpi.h>
#include <mpress/iso.h>

#include <cstdint>

namespace mpress::bench {

/// Makes a communicator with a neighbourhood, or with what MPI has for one.
struct Creation {
  enum Kind : int { cart, iso, attribute, adjacent, graph, duplicate };
  int kind;
  int dimensions;       ///< of `cart`
  const int* sizes;     ///< the same
  const int* periodic;  ///< the same
  int count;            ///< of `iso`, `attribute`
  const int* offsets;   ///< the same
  const MPI_Info* info;
  int sources_count;  ///< of `adjacent`; of `graph` the targets alone
  const int* sources;
  int targets_count;
  const int* targets;
  const MPI_Comm* comm;  ///< what it is made of
};

/// Where blocks are: arrays with an element for each, whose types are those of the call.
struct Blocks {
  void* buffer;
  const void* counts;
  const void* displacements;
  const MPI_Datatype* types;
};

struct Exchange {
  /// `iso`: mpress_iso_neighbor_alltoallw(); `started`: a persistent request; `neighbours`:
  /// MPI_Neighbor_alltoallw(); `global`: MPI_Alltoallv(), of one type.
  enum Kind : int { iso, started, neighbours, global };
  int kind;
  const MPI_Comm* comm;
  Blocks sent;
  Blocks received;
  mpress_request* request;
  const mpress_call* call;
};

/// `depth` steps of a stencil that averages `points` cells, on a block of `dimensions` 2 or 3. The
/// first reads `field`, which stays as it is; the others go from one of `results` to the other.
struct Update {
  int dimensions;
  int points;  ///< 5, 9, 7 or 27
  int depth;
  std::int64_t extent[3];  ///< with the halo, the last varies fastest
  const double* field;
  double* results[2];
};

/// Each part may be missing. The exchange uses the communicator that was created, if one was.
struct Operation {
  const Creation* creation;
  const Exchange* exchange;
  const Update* update;
};

/// The first two return an error code of MPI's.
int create(const Creation& creation, MPI_Comm* made);
int exchange(const Exchange& exchange, const MPI_Comm& comm);
void update(const Update& update);

}  // namespace mpress::bench
