/* Short sums in memory of the host on more communicators than there could be with a private one
 * beside each, then on one of them so many that it may have one. */
#include "check.h"

enum { COMMUNICATORS = 1100, SUMS = 100 };

static void sum(MPI_Comm comm) {
  float value = 1, all = 0;
  CHECK_MPI(MPI_Allreduce(&value, &all, 1, MPI_FLOAT, MPI_SUM, comm));
  CHECK(all == 2);
}

int main(int argc, char** argv) {
  static MPI_Comm comms[COMMUNICATORS];
  CHECK_MPI(MPI_Init(&argc, &argv));
  CHECK_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &check_rank));
  for (int i = 0; i < COMMUNICATORS; ++i) {
    CHECK_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
    sum(comms[i]);
  }
  for (int i = 0; i < SUMS; ++i) sum(comms[0]);
  for (int i = 0; i < COMMUNICATORS; ++i) CHECK_MPI(MPI_Comm_free(&comms[i]));
  CHECK_MPI(MPI_Finalize());
  if (check_rank == 0) puts("ok");
  return 0;
}
