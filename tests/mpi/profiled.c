/* Messages for the profiler: through calls that it wraps at one end and does not at the other. */
#include "check.h"

enum { N = 40000 };

int main(int argc, char** argv) {
  static float out[N], in[N];
  int rank;
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  fill_f32(out, N, rank);
  for (int round = 0; round < 3; ++round) {
    MPI_Irecv(in, N, MPI_FLOAT, 1 - rank, 0, MPI_COMM_WORLD, &request); /* not wrapped */
    MPI_Send(out, N, MPI_FLOAT, 1 - rank, 0, MPI_COMM_WORLD);           /* not wrapped */
    MPI_Wait(&request, MPI_STATUS_IGNORE);                              /* not wrapped */
    CHECK(same_f32(in, N, 1 - rank));
    memset(in, 0, sizeof in);
    MPI_Isend(out, N, MPI_FLOAT, 1 - rank, 1, MPI_COMM_WORLD, &request);
    MPI_Recv(in, N, MPI_FLOAT, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    PMPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(same_f32(in, N, 1 - rank));
    memset(in, 0, sizeof in);
    PMPI_Sendrecv(out, N, MPI_FLOAT, 1 - rank, 2, in, N, MPI_FLOAT, 1 - rank, 2, MPI_COMM_WORLD,
                  MPI_STATUS_IGNORE);
    CHECK(same_f32(in, N, 1 - rank));
  }
  MPI_Finalize();
  return 0;
}
