/* A probe for one tag must not let its message overtake an older one of another tag. */
#include "check.h"

enum { N = 4000 };

int main(int argc, char** argv) {
  static float first[N], second[N], received[N];
  int rank;
  MPI_Status status;
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  if (rank == 0) {
    fill_f32(first, N, 3);
    fill_f32(second, N, 5);
    MPI_Isend(first, N, MPI_FLOAT, 1, 3, MPI_COMM_WORLD, &request);
    MPI_Send(second, N, MPI_FLOAT, 1, 5, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else if (rank == 1) {
    MPI_Probe(0, 5, MPI_COMM_WORLD, &status);
    for (int tag = 3; tag <= 5; tag += 2) {
      MPI_Recv(received, N, MPI_FLOAT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
      CHECK(status.MPI_TAG == tag);
      CHECK(same_f32(received, N, tag));
    }
  }
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
