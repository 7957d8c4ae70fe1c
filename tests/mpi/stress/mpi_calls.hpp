// MPI's C interface, without the C++ bindings that some headers bring along.
#pragma once

#define MPICH_SKIP_MPICXX 1
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
