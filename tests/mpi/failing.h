/* What programs share in which a device refuses to work. */
#ifndef MPRESS_TESTS_FAILING_H
#define MPRESS_TESTS_FAILING_H

#include "check.h"
#include "device_memory.h"
#include "simulated_gpu.h"

/* A collective call from `out` to `in`, blocking or begun. */
typedef int (*Blocking)(const char* out, char* in);
typedef int (*Begun)(const char* out, char* in, MPI_Request* request);

/* How the calls are made: immediate, persistent, or any other word. */
static const char* form = "";
static MPI_Request persistent = MPI_REQUEST_NULL;

/* Returns what the call does that completes it. */
static inline int make_call(Blocking blocking, Begun begin, const char* out, char* in) {
  MPI_Request request;
  if (strcmp(form, "persistent") == 0) {
    CHECK_MPI(MPI_Start(&persistent));
    return MPI_Wait(&persistent, MPI_STATUS_IGNORE);
  }
  if (strcmp(form, "immediate") == 0) {
    CHECK_MPI(begin(out, in, &request));
    return MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  return blocking(out, in);
}

/* At the end: what lies on a device that failed cannot be freed. */
static inline void end(int rank, int has_failed, struct Memory* out, struct Memory* in,
                       struct Memory* host_out, struct Memory* host_in) {
  if (persistent != MPI_REQUEST_NULL) CHECK_MPI(MPI_Request_free(&persistent));
  if (!has_failed) {
    drop(out);
    drop(in);
  }
  drop(host_out);
  drop(host_in);
  CHECK_MPI(MPI_Finalize());
  if (rank == 0) puts("ok");
}

#endif
