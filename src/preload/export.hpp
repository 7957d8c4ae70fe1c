// The library exports MPI_* and nothing else.
//
// Calls with a count come in two forms, with an int and, since MPI 4.0, as NAME_c with an
// MPI_Count; one macro makes both of them from one body.
#pragma once

#define MPRESS_EXPORT extern "C" __attribute__((visibility("default")))

#if MPI_VERSION >= 4
#define MPRESS_BOTH_COUNTS(define, ...) \
  define(, int, __VA_ARGS__) define(_c, MPI_Count, __VA_ARGS__)
#else
#define MPRESS_BOTH_COUNTS(define, ...) define(, int, __VA_ARGS__)
#endif
