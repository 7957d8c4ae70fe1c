#include "mpi/calls/blocking_calls.hpp"

#include <dlfcn.h>

#include <limits>

namespace mpress::mpi {

BlockingCalls bound_blocking_calls;

namespace {

// Large counts by older calls, for language bindings that find these names in the front.

int detach(void* buffer, MPI_Count* size) {
  int narrow = 0;
  const int code = bound_blocking_calls.Buffer_detach(buffer, &narrow);
  *size = narrow;
  return code;
}

/// Only a unit that an int cannot hold is an error of the older calls.
int unit_of(MPI_Aint unit) {
  return unit >= 0 && unit <= std::numeric_limits<int>::max() ? static_cast<int>(unit) : -1;
}

int allocate(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win) {
  return bound_blocking_calls.Win_allocate(size, unit_of(unit), info, comm, base, win);
}

int allocate_shared(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void* base,
                    MPI_Win* win) {
  return bound_blocking_calls.Win_allocate_shared(size, unit_of(unit), info, comm, base, win);
}

}  // namespace

void bind_blocking_calls(void* library) {
#define MPRESS_BIND(name, ...) \
  bound_blocking_calls.name =  \
      reinterpret_cast<decltype(bound_blocking_calls.name)>(::dlsym(library, "PMPI_" #name));
  MPRESS_BLOCKING(MPRESS_BIND)
#undef MPRESS_BIND
  BlockingCalls& bound = bound_blocking_calls;
  if (!bound.Buffer_detach_c) bound.Buffer_detach_c = detach;
  if (!bound.Win_allocate_c) bound.Win_allocate_c = allocate;
  if (!bound.Win_allocate_shared_c) bound.Win_allocate_shared_c = allocate_shared;
}

}  // namespace mpress::mpi
