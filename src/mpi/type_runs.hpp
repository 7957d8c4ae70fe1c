// Where the data of a datatype lies: the contiguous runs of its type map, in order.
#pragma once

#include <cstddef>
#include <vector>

#include "gpu/gpu.hpp"
#include "mpi/calls.hpp"
#include "mpi/type_info.hpp"

namespace mpress::mpi {

/// The runs of `count` items, offsets relative to the buffer's address; neighbours are joined. Of
/// the last run, no more than makes `bytes` in all: fewer data than fit may have come.
std::vector<gpu::Run> runs_of(MPI_Datatype type, MPI_Count count, std::size_t bytes = SIZE_MAX);

/// The runs of the first wire::min_frame_bytes bytes of many items of a type with gaps. They are
/// found once a type, which may have more runs than a message should cost.
const std::vector<gpu::Run>& first_runs(const TypeInfo& type);

}  // namespace mpress::mpi
