// Where the data of a datatype lies: the contiguous runs of its type map, in order.
#pragma once

#include <cstddef>
#include <memory>

#include "gpu/runs.hpp"
#include "mpi/calls/calls.hpp"

namespace mpress::mpi {

/// The runs of `count` items, offsets relative to the buffer's address; neighbours are joined. Of
/// the last run, no more than makes `bytes` in all: fewer data than fit may have come.
gpu::RunList list_runs(MPI_Datatype type, MPI_Count count, std::size_t bytes = SIZE_MAX);

}  // namespace mpress::mpi
