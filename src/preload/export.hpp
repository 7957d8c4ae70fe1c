// What the entry points of a backend have in common. Each is defined under MPI's own name, seen by
// nobody but the backend's table of calls (preload/backend.cpp), through which the front calls it.
//
// Calls with a count come in two forms, with an int and, since MPI 4.0, as NAME_c with an
// MPI_Count; one macro makes both of them from one body.
#pragma once

#include <mpi.h>

#define MPRESS_EXPORT extern "C"

namespace mpress::preload {

/// The MPI_Finalize behind that of the front (front/backend.hpp); or null.
extern int (*finalize_behind)();

}  // namespace mpress::preload

#define MPRESS_BOTH_COUNTS(define, ...) \
  define(, int, __VA_ARGS__) define(_c, MPI_Count, __VA_ARGS__)
