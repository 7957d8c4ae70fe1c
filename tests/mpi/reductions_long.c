/* Long sums, and broadcasts, of memory on devices. The first call of a job is one, of pieces of
 * several chunks, before any link between devices is open; later ones, of all kinds, may go row by
 * row.
 *
 * reductions_long ERROR [COUNT [alone]]: the largest error of an element; elements that each rank
 * brings, a multiple of the ranks; all but rank 0 bring zeros. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "simulated_gpu.h"

static int rank, ranks, is_alone;
static double most;
static float *host, *wave, *send, *receive;

static float brought(int by, int i) {
  if (is_alone && by > 0) return 0;
  return (float)(by + 1) * wave[i] + (float)(i * 37 % 13) * 0.01f;
}

/* `count` results, of the elements from `first` on. */
static void check(const float* results, int first, int count) {
  sim_copy_out(host, results, (size_t)count * sizeof(float));
  for (int i = 0; i < count; ++i) {
    double exact = 0;
    for (int other = 0; other < ranks; ++other) exact += brought(other, first + i);
    CHECK(fabs(host[i] - exact) <= most);
  }
}

static void fill(float* memory, int count) {
  for (int i = 0; i < count; ++i) host[i] = brought(rank, i);
  sim_copy_in(memory, host, (size_t)count * sizeof(float));
}

int main(int argc, char** argv) {
  CHECK_MPI(MPI_Init(&argc, &argv));
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  check_rank = rank;
  most = atof(argv[1]);
  is_alone = argc > 3;
  const int count = argc > 2 ? atoi(argv[2]) : 1100000 * ranks + 77;
  const size_t bytes = (size_t)count * sizeof(float);
  host = malloc(bytes);
  wave = malloc(bytes);
  for (int i = 0; i < count; ++i) wave[i] = sinf((float)i * 1e-3f);
  send = sim_malloc(rank % sim_devices, bytes);
  receive = sim_malloc(rank % sim_devices, bytes);
  fill(send, count);
  const int rounds = argc > 2 ? 20 : 2; /* so many until all memory is open */
  for (int round = 0; round < rounds; ++round) {
    CHECK_MPI(MPI_Allreduce(send, receive, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD));
    if (round < 2 || round == rounds - 1) check(receive, 0, count);
  }
  if (argc > 2) {
    const int root = ranks - 1, own = count / ranks;
    /* Parts are longer than those before, as the root has none: the first ones open more memory. */
    for (int round = 0; round < rounds; ++round) {
      CHECK_MPI(MPI_Reduce(send, receive, count, MPI_FLOAT, MPI_SUM, root, MPI_COMM_WORLD));
      if (rank == root) check(receive, 0, count);
    }
    CHECK_MPI(MPI_Reduce_scatter_block(send, receive, own, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD));
    check(receive, rank * own, own);
    MPI_Request request;
    CHECK_MPI(MPI_Iallreduce(send, receive, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request));
    CHECK_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    check(receive, 0, count);
    for (int round = 0; round < 3; ++round) {
      const int from = (round + 1) % ranks;
      for (int i = 0; i < count; ++i) host[i] = rank == from ? brought(from, i) : -1;
      sim_copy_in(receive, host, bytes);
      CHECK_MPI(MPI_Bcast(receive, count, MPI_FLOAT, from, MPI_COMM_WORLD));
      sim_copy_out(host, receive, bytes);
      for (int i = 0; i < count; ++i) CHECK(fabs(host[i] - brought(from, i)) <= most);
    }
    CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, send, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD));
    check(send, 0, count);
  }
  free(host);
  free(wave);
  sim_free(send);
  sim_free(receive);
  if (rank == 0) printf("ok\n");
  MPI_Finalize();
  return 0;
}
