/* Small helpers for the MPI test programs. Every program also passes without mpress: it checks
 * what MPI promises, and only the report tells whether messages travelled compressed. */
#ifndef MPRESS_TESTS_CHECK_H
#define MPRESS_TESTS_CHECK_H

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_rank = -1;

static inline void check_failed(const char* file, int line, const char* condition) {
  fprintf(stderr, "rank %d: %s:%d: failed: %s\n", check_rank, file, line, condition);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* An expression, so that it may stand in a comma operator. */
#define CHECK(condition) ((condition) ? (void)0 : check_failed(__FILE__, __LINE__, #condition))

#define CHECK_MPI(call) CHECK((call) == MPI_SUCCESS)

/* Open MPI's own copies between processes write beyond the buffer of a receive that is too short
 * (4.1 and 5.0, seen without mpress). To be called before MPI_Init. */
static inline void forbid_own_copies(void) {
  setenv("OMPI_MCA_smsc", "^cma,knem,xpmem", 1);
  setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 1);
}

/* Smooth, seeded values that every codec can compress. */
static inline void fill_f32(float* values, int count, int seed) {
  for (int i = 0; i < count; ++i) values[i] = (float)(seed + 1) + 1e-3f * (float)i;
}

static inline int same_f32(const float* values, int count, int seed) {
  for (int i = 0; i < count; ++i) {
    if (values[i] != (float)(seed + 1) + 1e-3f * (float)i) return 0;
  }
  return 1;
}

/* sin(1e-3 * at), of at >= 0: those that were asked for once are looked up. Of one thread. */
static inline double wave_at(long at) {
  static double* known;
  static long number;
  if (at >= number) {
    const long more = at + 100000;
    known = (double*)realloc(known, (size_t)more * sizeof *known);
    for (; number < more; ++number) known[number] = sin(1e-3 * (double)number);
  }
  return known[at];
}

/* Bits of which no two are alike for long: nothing compresses them. Some are not a number. */
static inline void fill_noise(void* values, size_t bytes, unsigned seed) {
  unsigned state = seed * 2654435761u + 12345u;
  for (size_t i = 0; i + 4 <= bytes; i += 4) {
    state = state * 1664525u + 1013904223u;
    unsigned bits = (state ^ (state >> 15)) * 2246822519u;
    bits ^= bits >> 13;
    memcpy((char*)values + i, &bits, 4);
  }
}

static inline void fill_f64(double* values, int count, int seed) {
  for (int i = 0; i < count; ++i) values[i] = (double)(seed + 1) + 1e-6 * (double)i;
}

static inline int same_f64(const double* values, int count, int seed) {
  for (int i = 0; i < count; ++i) {
    if (values[i] != (double)(seed + 1) + 1e-6 * (double)i) return 0;
  }
  return 1;
}

/* Is it the error of a device that refuses to work, as its text tells? */
static inline int is_device_error(int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length;
  CHECK_MPI(MPI_Error_string(code, text, &length));
  return strstr(text, "device") != NULL;
}

#endif
