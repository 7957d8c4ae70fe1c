// Where the data of a datatype lies: the contiguous runs of its type map, in order.
#pragma once

#include <cstddef>
#include <vector>

#include "gpu/gpu.hpp"
#include "link/mpi.hpp"

namespace mpress::engine {

/// The runs of `count` items, offsets relative to the buffer's address; neighbours are joined. Of
/// the last run, no more than makes `bytes` in all: fewer data than fit may have come.
std::vector<gpu::Run> runs_of(MPI_Datatype type, MPI_Count count, std::size_t bytes = SIZE_MAX);

}  // namespace mpress::engine
