/* Wrong arguments are MPI's to refuse, and a null buffer of no elements is right. With "threads"
 * under MPI_THREAD_MULTIPLE. */
#include "check.h"

enum { N = 40000 };
#define REFUSED(call) CHECK((call) != MPI_SUCCESS)

int main(int argc, char** argv) {
  static float values[N], back[N];
  int rank, provided, index = 0;
  MPI_Request request;
  MPI_Status status;
  MPI_Init_thread(&argc, &argv, argc > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm world = MPI_COMM_WORLD;

  CHECK_MPI(MPI_Sendrecv(NULL, 0, MPI_FLOAT, rank, 0, NULL, 0, MPI_FLOAT, rank, 0, world, &status));
  CHECK_MPI(MPI_Isend(NULL, 0, MPI_FLOAT, rank, 0, world, &request));
  CHECK_MPI(MPI_Recv(NULL, 0, MPI_FLOAT, rank, 0, world, MPI_STATUS_IGNORE));
  CHECK_MPI(MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE));

  REFUSED(MPI_Send(NULL, N, MPI_FLOAT, rank, 0, world));
  REFUSED(MPI_Isend(NULL, N, MPI_FLOAT, rank, 0, world, &request));
  REFUSED(MPI_Recv(NULL, N, MPI_FLOAT, rank, 0, world, &status));
  REFUSED(MPI_Sendrecv_replace(NULL, N, MPI_FLOAT, rank, 0, rank, 0, world, &status));
  REFUSED(MPI_Send(values, N, MPI_FLOAT, 999, 0, world));
  REFUSED(MPI_Send(values, N, MPI_FLOAT, rank, -7, world));
  REFUSED(MPI_Send(values, -1, MPI_FLOAT, rank, 0, world));
  REFUSED(MPI_Send(values, N, MPI_DATATYPE_NULL, rank, 0, world));
  /* Its receive must not wait for a message that never comes, nor take a later one. */
  REFUSED(MPI_Sendrecv(values, N, MPI_FLOAT, 999, 0, back, N, MPI_FLOAT, rank, 0, world, &status));

  fill_f32(values, N, 1);
  CHECK_MPI(MPI_Irecv(back, N, MPI_FLOAT, rank, 0, world, &request));
  CHECK_MPI(MPI_Send(values, N, MPI_FLOAT, rank, 0, world));
  CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK(same_f32(back, N, 1));
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
