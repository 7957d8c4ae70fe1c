/* A PMPI profiler of the usual kind: some calls, not all, and what each rank saw. */
#include <mpi.h>
#include <stdio.h>

static long sends = 0, sent = 0, receives = 0, received = 0;

int MPI_Isend(const void* buffer, int count, MPI_Datatype type, int destination, int tag,
              MPI_Comm comm, MPI_Request* request) {
  ++sends;
  sent += count;
  return PMPI_Isend(buffer, count, type, destination, tag, comm, request);
}

int MPI_Recv(void* buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
             MPI_Status* status) {
  MPI_Status own;
  int elements;
  const int code = PMPI_Recv(buffer, count, type, source, tag, comm, &own);
  PMPI_Get_count(&own, type, &elements);
  ++receives;
  received += elements;
  if (status != MPI_STATUS_IGNORE) *status = own;
  return code;
}

int MPI_Finalize(void) {
  int rank;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  printf("rank %d: %ld sends of %ld, %ld receives of %ld\n", rank, sends, sent, receives, received);
  fflush(stdout);
  return PMPI_Finalize();
}
