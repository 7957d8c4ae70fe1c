/* Messages of a type, `elements` of them each, by the calls that the second argument names: three
 * from rank 0 to rank 1. */
#include "check.h"

enum { MOST = 20000, TIMES = 3 };

int main(int argc, char** argv) {
  static char buffer[MOST * sizeof(double)];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
  const int elements = atoi(argv[1]);
  CHECK(elements <= MOST);
  const char* const calls = argv[2];
  const MPI_Datatype type = strcmp(argv[3], "int") == 0 ? MPI_INT : MPI_DOUBLE;
  MPI_Request request = MPI_REQUEST_NULL;
  for (int i = 0; i < TIMES; ++i) {
    if (check_rank == 1) {
      MPI_Recv(buffer, elements, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (strcmp(calls, "blocking") == 0) {
      MPI_Send(buffer, elements, type, 1, 0, MPI_COMM_WORLD);
    } else if (strcmp(calls, "immediate") == 0) {
      MPI_Isend(buffer, elements, type, 1, 0, MPI_COMM_WORLD, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      if (i == 0) MPI_Send_init(buffer, elements, type, 1, 0, MPI_COMM_WORLD, &request);
      MPI_Startall(1, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      CHECK(request != MPI_REQUEST_NULL);
    }
  }
  if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  MPI_Finalize();
  if (check_rank == 0) puts("ok");
  return 0;
}
