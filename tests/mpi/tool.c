/* A PMPI tool: how often a rank made each call, and for how many bytes. With
 * PARTIAL it wraps MPI_Send and MPI_Wait alone. */
#include <mpi.h>
#include <stdio.h>

enum { SEND, ISEND, RECV, IRECV, WAIT, WAITALL, PROBE, KINDS };

static const char* const names[KINDS] = {"Send", "Isend",   "Recv", "Irecv",
                                         "Wait", "Waitall", "Probe"};
static long calls[KINDS], bytes[KINDS];

static void count(int kind, int items, MPI_Datatype type) {
  int size;
  PMPI_Type_size(type, &size);
  ++calls[kind];
  bytes[kind] += (long)items * size;
}

static void count_status(int kind, const MPI_Status* status) {
  int received;
  PMPI_Get_count(status, MPI_BYTE, &received);
  count(kind, received, MPI_BYTE);
}

int MPI_Send(const void* buffer, int items, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  count(SEND, items, type);
  return PMPI_Send(buffer, items, type, to, tag, comm);
}

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  MPI_Status own;
  const int code = PMPI_Wait(request, &own);
  count_status(WAIT, &own);
  if (status != MPI_STATUS_IGNORE) *status = own;
  return code;
}

#ifndef PARTIAL
int MPI_Isend(const void* buffer, int items, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  count(ISEND, items, type);
  return PMPI_Isend(buffer, items, type, to, tag, comm, request);
}

int MPI_Irecv(void* buffer, int items, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request* request) {
  count(IRECV, items, type);
  return PMPI_Irecv(buffer, items, type, from, tag, comm, request);
}

int MPI_Recv(void* buffer, int items, MPI_Datatype type, int from, int tag, MPI_Comm comm,
             MPI_Status* status) {
  MPI_Status own;
  const int code = PMPI_Recv(buffer, items, type, from, tag, comm, &own);
  count_status(RECV, &own);
  if (status != MPI_STATUS_IGNORE) *status = own;
  return code;
}

int MPI_Waitall(int many, MPI_Request requests[], MPI_Status statuses[]) {
  calls[WAITALL] += many; /* the statuses of sends tell nothing */
  return PMPI_Waitall(many, requests, statuses);
}

int MPI_Probe(int from, int tag, MPI_Comm comm, MPI_Status* status) {
  MPI_Status own;
  const int code = PMPI_Probe(from, tag, comm, &own);
  count_status(PROBE, &own);
  if (status != MPI_STATUS_IGNORE) *status = own;
  return code;
}
#endif

int MPI_Finalize(void) {
  char line[512];
  int rank, length;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  length = sprintf(line, "rank %d:", rank);
  for (int kind = 0; kind < KINDS; ++kind) {
    length += sprintf(line + length, " %s %ld/%ld", names[kind], calls[kind], bytes[kind]);
  }
  puts(line);
  fflush(stdout);
  return PMPI_Finalize();
}
