/* Messages of types with gaps between the memory of two GPUs: each rank's to the other and back.
 * gaps SECONDS: for each size and length of runs, a line of JSON with the median of the times of
 * one message in microseconds; "run" 0 is one without gaps. bench/gaps.py runs it.
 *
 * The first messages bring the GPUs to their clocks, and are not told. */
#include <cuda_runtime_api.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { most = 1000, least = 3 };

static int compare(const void* a, const void* b) {
  const double one = *(const double*)a, other = *(const double*)b;
  return (one > other) - (one < other);
}

/* One way, as rank 0 sees it. */
static double measure(void* data, MPI_Datatype type, double seconds) {
  static double times[most];
  int rank, samples = 0, goes_on = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const double begin = MPI_Wtime();
  for (int i = 0; goes_on && samples < most; ++i) {
    const double sent = MPI_Wtime();
    if (rank == 0) MPI_Send(data, 1, type, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(data, 1, type, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(data, 1, type, 0, 0, MPI_COMM_WORLD);
    if (i > 0) times[samples++] = (MPI_Wtime() - sent) / 2 * 1e6; /* the first makes connections */
    goes_on = samples < least || MPI_Wtime() - begin < seconds;
    MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  qsort(times, (size_t)samples, sizeof times[0], compare);
  return times[samples / 2];
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, devices = 0;
  const double seconds = argc > 1 ? atof(argv[1]) : 0.3;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices < 1) MPI_Abort(MPI_COMM_WORLD, 2);
  cudaSetDevice(rank % devices);
  const int sizes[] = {4 << 10, 64 << 10, 1 << 20, 16 << 20}, runs[] = {0, 8, 1 << 10, 64 << 10};
  void* first = NULL;
  if (cudaMalloc(&first, (size_t)sizes[2]) != cudaSuccess) MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Datatype all;
  MPI_Type_contiguous(sizes[2], MPI_BYTE, &all);
  MPI_Type_commit(&all);
  measure(first, all, 5 * seconds);
  MPI_Type_free(&all);
  cudaFree(first);
  for (int s = 0; s < 4; ++s) {
    for (int r = 0; r < 4; ++r) {
      const int run = runs[r] > 0 ? runs[r] : sizes[s];
      const int count = sizes[s] / run;
      if (runs[r] > 0 && count < 2) continue;
      MPI_Datatype type;
      MPI_Type_vector(count, run / 8, 2 * run / 8, MPI_DOUBLE, &type);
      MPI_Type_commit(&type);
      void* data = NULL;
      if (cudaMalloc(&data, 2 * (size_t)sizes[s]) != cudaSuccess) MPI_Abort(MPI_COMM_WORLD, 2);
      cudaMemset(data, 0, 2 * (size_t)sizes[s]);
      cudaDeviceSynchronize();
      const double us = measure(data, type, seconds);
      if (rank == 0) printf("{\"bytes\": %d, \"run\": %d, \"us\": %.2f}\n", sizes[s], runs[r], us);
      fflush(stdout);
      MPI_Type_free(&type);
      cudaFree(data);
    }
  }
  MPI_Finalize();
  return 0;
}
