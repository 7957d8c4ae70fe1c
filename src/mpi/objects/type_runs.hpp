// Where the data of a datatype lies: the contiguous runs of its type map, in order.
#pragma once

#include <cstddef>
#include <memory>

#include "gpu/runs.hpp"
#include "mpi/calls/calls.hpp"
#include "mpi/objects/type_info.hpp"

namespace mpress::mpi {

/// The runs of `count` items, offsets relative to the buffer's address; neighbours are joined. Of
/// the last run, no more than makes `bytes` in all: fewer data than fit may have come.
gpu::RunList list_runs(MPI_Datatype type, MPI_Count count, std::size_t bytes = SIZE_MAX);

/// `count` items of a type, or without one so many bytes, in memory of the host.
struct Items {
  void* data;
  const TypeInfo* type;
  MPI_Count count;
};

/// Copies what lies at `from` to `to`, which has the same signature, run by run, where both are
/// regular (gpu/runs.hpp) or have no gaps: faces of arrays take a fraction of the time that MPIs
/// take. False, and nothing is copied, where one is neither.
bool copy_regular(const Items& from, const Items& to);

}  // namespace mpress::mpi
