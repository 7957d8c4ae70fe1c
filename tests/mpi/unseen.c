/* One message to rank 1, which receives it through unseen_binding.c. */
#include "check.h"

void mpi_comm_rank_(MPI_Comm*, int*, int*);
void mpi_irecv_(void*, int*, MPI_Datatype*, int*, int*, MPI_Comm*, MPI_Request*, int*);
void mpi_wait_(MPI_Request*, MPI_Status*, int*);

enum { N = 40000 };

int main(int argc, char** argv) {
  static float values[N];
  int count = N, zero = 0, rank, error;
  MPI_Comm comm = MPI_COMM_WORLD;
  MPI_Datatype type = MPI_FLOAT;
  MPI_Request request;
  MPI_Status status;
  MPI_Init(&argc, &argv);
  mpi_comm_rank_(&comm, &rank, &error);
  check_rank = rank;
  if (rank == 0) {
    fill_f32(values, N, 1);
    CHECK_MPI(MPI_Send(values, N, MPI_FLOAT, 1, 0, MPI_COMM_WORLD));
  } else {
    mpi_irecv_(values, &count, &type, &zero, &zero, &comm, &request, &error);
    CHECK(error == MPI_SUCCESS);
    mpi_wait_(&request, &status, &error);
    CHECK(error == MPI_SUCCESS);
    printf("rank 1: %s\n", same_f32(values, N, 1) ? "intact" : "changed");
  }
  MPI_Finalize();
  return 0;
}
