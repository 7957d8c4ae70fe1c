/* Processes that start children by fork (tests/mpi/forked.h) while mpress's own calls are under
 * way. To be run by 2 ranks. */
#include <mpress/mpress.h>

#include "../mpi/forked.h"

enum { COUNT = 1 << 19 };

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  CHECK_MPI(mpress_init());
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_rank = rank;
  const int other = 1 - rank;
  double* out = malloc(COUNT * sizeof *out);
  double* in = malloc(COUNT * sizeof *in);
  double* sum = malloc(COUNT * sizeof *sum);
  mpress_call call = {0};
  call.mask = MPRESS_CALL_SPEC;
  call.spec = "mpc";
  for (int way = 0; way < CHILD_WAYS; ++way) {
    mpress_request requests[3];
    fill_f64(out, COUNT, rank + way);
    CHECK_MPI(mpress_irecv(in, COUNT, MPI_DOUBLE, other, 1, MPI_COMM_WORLD, &requests[0], NULL));
    CHECK_MPI(mpress_isend(out, COUNT, MPI_DOUBLE, other, 1, MPI_COMM_WORLD, &requests[1], &call));
    CHECK_MPI(mpress_iallreduce(out, sum, COUNT, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, &requests[2],
                                &call));
    start_child(way);
    CHECK_MPI(mpress_waitall(3, requests, MPI_STATUSES_IGNORE));
    CHECK(same_f64(in, COUNT, other + way) && same_f64(sum, COUNT, way + 1));
    start_child(way);
  }
  free(out);
  free(in);
  free(sum);
  MPI_Finalize();
  if (rank == 0) puts("ok");
  return 0;
}
