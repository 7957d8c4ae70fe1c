/* Partitioned communication beside messages of the same peers. */
#include "check.h"

enum { PARTS = 4, N = 1000 };

int main(int argc, char** argv) {
  static float out[PARTS * N], in[PARTS * N], mine[N], got[N];
  MPI_Request requests[4];
  int rank, size, arrived;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  CHECK_MPI(MPI_Psend_init(out, PARTS, N, MPI_FLOAT, next, 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                           &requests[0]));
  CHECK_MPI(MPI_Precv_init(in, PARTS, N, MPI_FLOAT, previous, 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                           &requests[1]));
  for (int round = 0; round < 3; ++round) {
    memset(in, 0, sizeof in);
    fill_f32(mine, N, rank + round);
    fill_f32(out, PARTS * N, rank + round);
    MPI_Irecv(got, N, MPI_FLOAT, previous, 2, MPI_COMM_WORLD, &requests[2]);
    /* Open MPI up to 5.0.11 counts a part twice, and never ends, where any call lets it proceed
     * between the start and MPI_Pready, without mpress, too: nothing stands between them here. */
    MPI_Startall(2, requests);
    for (int part = PARTS - 1; part >= 0; --part) MPI_Pready(part, requests[0]);
    MPI_Isend(mine, N, MPI_FLOAT, next, 2, MPI_COMM_WORLD, &requests[3]);
    do {
      MPI_Parrived(requests[1], 0, &arrived);
    } while (!arrived);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    CHECK(same_f32(in, PARTS * N, previous + round));
    CHECK(same_f32(got, N, previous + round));
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
