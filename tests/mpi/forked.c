/* Processes that start children by fork (forked.h) while messages are under way, in one piece and
 * in chunks, and between calls. To be run by 2 ranks. */
#include "forked.h"

enum { LONG = 1 << 19, SHORT = 20000 };

int main(int argc, char** argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  const int other = 1 - rank;
  double* out = malloc(LONG * sizeof *out);
  double* in = malloc(LONG * sizeof *in);
  double* sum = malloc(LONG * sizeof *sum);
  for (int round = 0; round < 2 * CHILD_WAYS; ++round) {
    const int count = round % 2 ? LONG : SHORT;
    MPI_Request requests[2];
    fill_f64(out, count, rank + round);
    MPI_Irecv(in, count, MPI_DOUBLE, other, round, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, count, MPI_DOUBLE, other, round, MPI_COMM_WORLD, &requests[1]);
    start_child(round / 2);
    CHECK_MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK(same_f64(in, count, other + round));
    start_child(round / 2);
    CHECK_MPI(MPI_Allreduce(out, sum, count, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
    CHECK(same_f64(sum, count, round + 1));
  }
  free(out);
  free(in);
  free(sum);
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
