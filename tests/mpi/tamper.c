/* A library preloaded beside mpress that spoils received messages, to see that spoilt frames are
 * reported: TAMPER=N flips a bit of byte N of every message of more than 64 bytes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>

int PMPI_Recv(void* buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Status* status) {
  int (*receive)(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status*) = (int (*)(
      void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status*))dlsym(RTLD_NEXT, "PMPI_Recv");
  const char* at = getenv("TAMPER");
  const int code = receive(buffer, count, type, source, tag, comm, status);
  int bytes = 0;
  if (code == MPI_SUCCESS && status != MPI_STATUS_IGNORE) PMPI_Get_count(status, MPI_BYTE, &bytes);
  if (at && bytes > 64) ((char*)buffer)[atoi(at) % bytes] ^= 4;
  return code;
}
