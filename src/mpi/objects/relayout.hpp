// Copies between layouts of the same signature, by a message to ourselves. MPI_Pack and MPI_Unpack
// do less: MPI_Unpack takes no last, partly filled item, and MPI_Pack of MPICH 4.0 refuses
// MPI_BOTTOM.
#pragma once

#include "mpi/calls/calls.hpp"

namespace mpress::mpi {

/// `count` items of `type`.
struct TypedCount {
  MPI_Count count;
  MPI_Datatype type;
};

/// Copies what lies at `from` to `to`, which takes as much or more. Returns an MPI error code.
int relayout(const void* from, const TypedCount& from_layout, void* to,
             const TypedCount& to_layout);

}  // namespace mpress::mpi
