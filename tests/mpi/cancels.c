/* A library preloaded beside mpress that makes an MPI that cancels sends, which not all do: those
 * of tag 77, which are never sent. See count_tests.c for how it gets in between. */
#include "look_up.h"

#include <mpi.h>
#include <string.h>

typedef int (*Send)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
typedef int (*Start)(MPI_Grequest_query_function*, MPI_Grequest_free_function*,
                     MPI_Grequest_cancel_function*, void*, MPI_Request*);
typedef int (*Complete)(MPI_Request);
typedef int (*SetElements)(MPI_Status*, MPI_Datatype, int);
typedef int (*SetCancelled)(MPI_Status*, int);

static Send mpi_isend, mpi_issend;
static Start mpi_grequest_start;
static Complete mpi_grequest_complete;
static SetElements mpi_status_set_elements;
static SetCancelled mpi_status_set_cancelled;

/* Sends that only end by being cancelled. */
static struct Unsent {
  MPI_Request request;
  enum { UNDER_WAY, CANCELLED } state;
} unsent[1000];
static int unsent_count = 0;

static void end(struct Unsent* send) {
  send->state = CANCELLED;
  mpi_grequest_complete(send->request);
}

static int query(void* send, MPI_Status* status) {
  (void)send;
  mpi_status_set_elements(status, MPI_BYTE, 0);
  return mpi_status_set_cancelled(status, 1);
}

static int forget(void* send) {
  (void)send;
  return MPI_SUCCESS;
}

static int cancel(void* state, int complete) {
  struct Unsent* send = state;
  if (complete || send->state != UNDER_WAY) return MPI_SUCCESS;
  end(send);
  return MPI_SUCCESS;
}

static int start(Send call, const void* buffer, int count, MPI_Datatype type, int to, int tag,
                 MPI_Comm comm, MPI_Request* request) {
  if (tag != 77) return call(buffer, count, type, to, tag, comm, request);
  struct Unsent* send = &unsent[unsent_count++];
  const int code = mpi_grequest_start(query, forget, cancel, send, request);
  send->request = *request;
  return code;
}

static int isend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                 MPI_Request* request) {
  return start(mpi_isend, buffer, count, type, to, tag, comm, request);
}

static int issend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                  MPI_Request* request) {
  return start(mpi_issend, buffer, count, type, to, tag, comm, request);
}

void* dlsym(void* handle, const char* name) {
  void* const found = look_up(handle, name);
  if (strcmp(name, "PMPI_Isend") != 0 && strcmp(name, "PMPI_Issend") != 0) return found;
  mpi_grequest_start = (Start)look_up(handle, "PMPI_Grequest_start");
  mpi_grequest_complete = (Complete)look_up(handle, "PMPI_Grequest_complete");
  mpi_status_set_elements = (SetElements)look_up(handle, "PMPI_Status_set_elements");
  mpi_status_set_cancelled = (SetCancelled)look_up(handle, "PMPI_Status_set_cancelled");
  if (strcmp(name, "PMPI_Isend") == 0) return mpi_isend = (Send)found, (void*)isend;
  return mpi_issend = (Send)found, (void*)issend;
}
