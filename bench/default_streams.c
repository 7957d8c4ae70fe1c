/* What it costs to ask what the default streams hold: exchanges of two ranks, each with memory of a
 * GPU, by plain MPI.
 *
 * default_streams [REPEAT]: a line of JSON for each case, medians in microseconds. "idle": nothing
 * is on the GPU; "set": a cudaMemset of the buffer comes right before; "busy": a stream of
 * cudaStreamCreate's has 5 ms to do, without the GPU. "one_way": half of a message and its answer;
 * "exchange": an MPI_Sendrecv, of the rank that takes longer. */
#include <cuda_runtime.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST = 4 << 20, WARM = 30, BUSY_US = 5000 };

static int rank, other;
static char *out, *in;
static cudaStream_t stream;

static void check(int failed, const char* what) {
  if (!failed) return;
  fprintf(stderr, "default_streams: rank %d: %s failed\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void CUDART_CB rest(void* unused) {
  (void)unused;
  usleep(BUSY_US);
}

enum Mode { IDLE, SET, BUSY };
static const char* const names[] = {"idle", "set", "busy"};

static void prepare(enum Mode mode, int bytes) {
  check(cudaDeviceSynchronize() != cudaSuccess, "the GPU");
  if (mode == BUSY) check(cudaLaunchHostFunc(stream, rest, NULL) != cudaSuccess, "the stream");
  MPI_Barrier(MPI_COMM_WORLD);
  if (mode == SET) check(cudaMemset(out, 1, (size_t)bytes) != cudaSuccess, "cudaMemset");
}

static void exchange(int bytes) {
  MPI_Sendrecv(out, bytes, MPI_CHAR, other, 1, in, bytes, MPI_CHAR, other, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
}

static void there_and_back(int bytes) {
  if (rank == 0) {
    MPI_Send(out, bytes, MPI_CHAR, other, 2, MPI_COMM_WORLD);
    MPI_Recv(in, bytes, MPI_CHAR, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(in, bytes, MPI_CHAR, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(out, bytes, MPI_CHAR, other, 2, MPI_COMM_WORLD);
  }
}

static int before(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median(double* seconds, int rounds) {
  MPI_Allreduce(MPI_IN_PLACE, seconds, rounds, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  qsort(seconds, (size_t)rounds, sizeof *seconds, before);
  return seconds[rounds / 2] * 1e6;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int size = 0, devices = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  other = 1 - rank;
  const int repeat = argc > 1 ? atoi(argv[1]) : 301;
  check(size != 2, "being two ranks");
  check(cudaGetDeviceCount(&devices) != cudaSuccess || devices < 1, "a GPU");
  check(cudaSetDevice(rank % devices) != cudaSuccess, "the GPU");
  check(cudaMalloc((void**)&out, MOST) != cudaSuccess, "memory");
  check(cudaMalloc((void**)&in, MOST) != cudaSuccess, "memory");
  check(cudaMemset(out, 0, MOST) != cudaSuccess, "memory");
  check(cudaStreamCreate(&stream) != cudaSuccess, "a stream");
  static const int sizes[] = {8, 16 << 10, 64 << 10, 1 << 20, MOST};
  double* const exchanges = malloc(sizeof(double) * (size_t)repeat);
  double* const ways = malloc(sizeof(double) * (size_t)repeat);
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; ++s) {
    for (enum Mode mode = IDLE; mode <= BUSY; ++mode) {
      for (int i = -WARM; i < repeat; ++i) {
        const int at = i < 0 ? 0 : i;
        prepare(mode, sizes[s]);
        double begin = MPI_Wtime();
        exchange(sizes[s]);
        exchanges[at] = MPI_Wtime() - begin;
        prepare(mode, sizes[s]);
        begin = MPI_Wtime();
        there_and_back(sizes[s]);
        ways[at] = rank == 0 ? (MPI_Wtime() - begin) / 2 : 0;
      }
      const double exchanged = median(exchanges, repeat), one_way = median(ways, repeat);
      if (rank == 0) {
        printf("{\"mode\": \"%s\", \"bytes\": %d, \"exchange\": %.2f, \"one_way\": %.2f}\n",
               names[mode], sizes[s], exchanged, one_way);
        fflush(stdout);
      }
    }
  }
  MPI_Finalize();
  return 0;
}
