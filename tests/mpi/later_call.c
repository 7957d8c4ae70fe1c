/* Sends with a large count if that can be looked up, as language bindings do which are built for
 * no particular version of MPI. With an argument: calls Request_get_status_any as well. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "check.h"

enum { N = 40000 };
typedef int (*StatusOfAny)(int, const MPI_Request[], int*, int*, MPI_Status*);
typedef int (*SendLarge)(const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm);

int main(int argc, char** argv) {
  static float out[N], in[N];
  MPI_Request request;
  SendLarge send = (SendLarge)dlsym(RTLD_DEFAULT, "MPI_Send_c");
  MPI_Init(&argc, &argv);
  fill_f32(out, N, 1);
  MPI_Irecv(in, N, MPI_FLOAT, 0, 0, MPI_COMM_SELF, &request);
  if (send) {
    send(out, N, MPI_FLOAT, 0, 0, MPI_COMM_SELF);
  } else {
    MPI_Send(out, N, MPI_FLOAT, 0, 0, MPI_COMM_SELF);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (argc > 1) {
    int index, flag;
    StatusOfAny any = (StatusOfAny)dlsym(RTLD_DEFAULT, "MPI_Request_get_status_any");
    any(1, &request, &index, &flag, MPI_STATUS_IGNORE);
  }
  CHECK(same_f32(in, N, 1));
  MPI_Finalize();
  puts("ok");
  return 0;
}
