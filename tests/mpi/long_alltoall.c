/* All-to-alls of float elements in memory of devices, of some MB a pair: long_alltoall COUNT. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "simulated_gpu.h"

int main(int argc, char** argv) {
  int rank, size;
  CHECK(argc == 2);
  CHECK_MPI(MPI_Init(&argc, &argv));
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_rank = rank;
  const int count = atoi(argv[1]), all = count * size;
  const size_t bytes = (size_t)all * sizeof(float);
  float* const host = malloc(bytes);
  float* const send = sim_malloc(rank % sim_devices, bytes);
  float* const receive = sim_malloc(rank % sim_devices, bytes);
  for (int i = 0; i < all; ++i) host[i] = (float)rank + 1e-6f * (float)i;
  sim_copy_in(send, host, bytes);
  for (int round = 0; round < 2; ++round) {
    CHECK_MPI(MPI_Alltoall(send, count, MPI_FLOAT, receive, count, MPI_FLOAT, MPI_COMM_WORLD));
  }
  sim_copy_out(host, receive, bytes);
  for (int i = 0; i < all; ++i) {
    const float sent = (float)(i / count) + 1e-6f * (float)(rank * count + i % count);
    CHECK(fabsf(host[i] - sent) <= 1e-3f);
  }
  sim_free(send);
  sim_free(receive);
  free(host);
  if (rank == 0) puts("ok");
  MPI_Finalize();
  return 0;
}
