/* The first call of a job is a long MPI_Allreduce of memory on devices: pieces of several chunks,
 * before any link between devices is open. Argument: the largest error of an element. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "simulated_gpu.h"

static float brought(int rank, int i) {
  return (float)(rank + 1) * sinf((float)i * 1e-3f) + (float)(i * 37 % 13) * 0.01f;
}

int main(int argc, char** argv) {
  int rank, ranks;
  CHECK_MPI(MPI_Init(&argc, &argv));
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const double most = atof(argv[1]);
  const int count = 1100000 * ranks + 77;
  const size_t bytes = (size_t)count * sizeof(float);
  float* const host = malloc(bytes);
  float* const send = sim_malloc(rank % sim_devices, bytes);
  float* const receive = sim_malloc(rank % sim_devices, bytes);
  for (int i = 0; i < count; ++i) host[i] = brought(rank, i);
  sim_copy_in(send, host, bytes);
  for (int round = 0; round < 2; ++round) {
    CHECK_MPI(MPI_Allreduce(send, receive, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD));
    sim_copy_out(host, receive, bytes);
    for (int i = 0; i < count; ++i) {
      double exact = 0;
      for (int other = 0; other < ranks; ++other) exact += brought(other, i);
      CHECK(fabs(host[i] - exact) <= most);
    }
  }
  free(host);
  sim_free(send);
  sim_free(receive);
  if (rank == 0) printf("ok\n");
  MPI_Finalize();
  return 0;
}
