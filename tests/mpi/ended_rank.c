/* Three ranks, of which one ends by MPI_Abort on a communicator of its own after it has exchanged
 * messages with the others. Those exchange more, and end. To be started with a launcher that leaves
 * them alone. Arguments: whether a message to the rank that ends is never received. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { count = 1 << 19 };

static float* field(int seed) {
  float* const values = malloc(count * sizeof(float));
  for (int i = 0; i < count; ++i) values[i] = (float)(seed + i / 7);
  return values;
}

static void check(const float* got, int seed) {
  float* const expected = field(seed);
  if (memcmp(got, expected, count * sizeof(float)) != 0) {
    printf("wrong data\n");
    exit(1);
  }
  free(expected);
}

static void exchange(int partner, int rank) {
  float* const to = field(rank);
  float* const from = malloc(count * sizeof(float));
  MPI_Sendrecv(to, count, MPI_FLOAT, partner, 1, from, count, MPI_FLOAT, partner, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  check(from, partner);
  free(to);
  free(from);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int a = 0; a < 3; ++a) {
    for (int b = a + 1; b < 3; ++b) {
      if (rank == a) exchange(b, rank);
      if (rank == b) exchange(a, rank);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) MPI_Abort(MPI_COMM_SELF, 3);
  if (rank == 0 && argc > 1 && strcmp(argv[1], "unreceived") == 0) {
    static MPI_Request request;
    MPI_Isend(field(5), count, MPI_FLOAT, 1, 2, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
  }
  exchange(2 - rank, rank);
  MPI_Finalize();
  printf("ok\n");
  return 0;
}
