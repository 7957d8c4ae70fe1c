/* Looks up calls that not every MPI has, as language bindings do which are built for no particular
 * version of MPI. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "check.h"

enum { N = 40000 };
typedef int (*SendLarge)(const void*, MPI_Count, MPI_Datatype, int, int, MPI_Comm);
typedef int (*GetAny)(int, const MPI_Request*, int*, int*, MPI_Status*);

int main(int argc, char** argv) {
  static float out[N], in[N];
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Status status;
  int index = -1, flag = 0, count;
  SendLarge send = (SendLarge)dlsym(RTLD_DEFAULT, "MPI_Send_c");
  GetAny get_any = (GetAny)dlsym(RTLD_DEFAULT, "MPI_Request_get_status_any");
  MPI_Init(&argc, &argv);
  fill_f32(out, N, 1);
  MPI_Irecv(in, N, MPI_FLOAT, 0, 0, MPI_COMM_SELF, &requests[1]);
  CHECK(send && get_any);
  send(out, N, MPI_FLOAT, 0, 0, MPI_COMM_SELF);
  while (!flag) get_any(2, requests, &index, &flag, &status);
  MPI_Get_count(&status, MPI_FLOAT, &count);
  CHECK(index == 1 && count == N && same_f32(in, N, 1));
  MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  int (*convert)(MPI_Message) = (int (*)(MPI_Message))dlsym(RTLD_DEFAULT, "MPI_Message_toint");
  MPI_Message (*convert_back)(int) =
      (MPI_Message(*)(int))dlsym(RTLD_DEFAULT, "MPI_Message_fromint");
  CHECK(convert && convert_back && convert_back(convert(MPI_MESSAGE_NULL)) == MPI_MESSAGE_NULL);
  MPI_Finalize();
  puts("ok");
  return 0;
}
