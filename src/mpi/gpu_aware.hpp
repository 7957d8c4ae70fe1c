// Whether MPI itself takes memory of devices.
#pragma once

namespace mpress::mpi {

/// What the library says of CUDA's at run time: by MPIX_Query_cuda_support, or by the memory kinds
/// of MPI_COMM_WORLD (MPI 4.1). MPI runs.
bool takes_device_memory();

}  // namespace mpress::mpi
